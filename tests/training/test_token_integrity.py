from __future__ import annotations

from pathlib import Path

import pytest

from tasks.corpus.encoding.index import read_index
from tasks.stage import StageError
from tasks.training.token_integrity import verify_tokens


def names(directory: Path) -> list[str]:
    """Every file of the directory but the index, which lists them."""
    tokenizer = {entry.file for entry in read_index(directory).tokenizer}
    found = {path.name for path in directory.iterdir()} - {"index.json"}
    return sorted(name for name in found if not name.startswith("tokenizer") or name in tokenizer)


def test_whole_files_are_read_once_each(tiny_tokens: Path) -> None:
    read = verify_tokens(tiny_tokens, read_index(tiny_tokens))
    assert read == sum((tiny_tokens / name).stat().st_size for name in names(tiny_tokens))


def test_a_flipped_byte_names_the_file(tiny_tokens: Path) -> None:
    index = read_index(tiny_tokens)
    assert {name.split(".", 1)[1] for name in names(tiny_tokens)} >= {
        "bin",
        "documents.parquet",
        "pieces.arrow",
    }
    for name in names(tiny_tokens):
        whole = (tiny_tokens / name).read_bytes()
        flipped = bytearray(whole)
        flipped[len(flipped) // 2] ^= 1
        (tiny_tokens / name).write_bytes(flipped)
        with pytest.raises(StageError, match=f"{name} is not the file that index.json lists"):
            verify_tokens(tiny_tokens, index)
        (tiny_tokens / name).write_bytes(whole)


def test_a_missing_file_is_named(tiny_tokens: Path) -> None:
    (tiny_tokens / "train-00001.bin").unlink()
    with pytest.raises(StageError, match="train-00001.bin does not exist, but index.json lists it"):
        verify_tokens(tiny_tokens, read_index(tiny_tokens))
