from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tasks.corpus.token_documents import documents_path, write_token_documents
from tasks.stage import StageError
from tasks.training.token_integrity import verify_tokens


def test_whole_files_are_read_once_each(tiny_tokens: Path) -> None:
    assert verify_tokens(tiny_tokens) == 2 * (700 + 501 + 130)


@pytest.mark.parametrize("name", ["train-00000.bin", "validation-00000.bin"])
def test_a_flipped_byte_names_the_file(tiny_tokens: Path, name: str) -> None:
    content = bytearray((tiny_tokens / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tiny_tokens / name).write_bytes(content)
    with pytest.raises(StageError, match=f"{name} is not the file that index.json lists"):
        verify_tokens(tiny_tokens)


def test_a_missing_file_is_named(tiny_tokens: Path) -> None:
    (tiny_tokens / "train-00001.bin").unlink()
    with pytest.raises(StageError, match="train-00001.bin does not exist, but index.json lists it"):
        verify_tokens(tiny_tokens)


def test_any_file_that_the_index_lists_is_checked_wherever_in_it(tiny_tokens: Path) -> None:
    index = json.loads((tiny_tokens / "index.json").read_text())
    sha256 = hashlib.sha256((tiny_tokens / "tokenizer.json").read_bytes()).hexdigest()
    index["files"] = {"tokenizer": {"file": "tokenizer.json", "sha256": sha256}}
    (tiny_tokens / "index.json").write_text(json.dumps(index))
    verify_tokens(tiny_tokens)
    (tiny_tokens / "tokenizer.json").write_text("{}")
    with pytest.raises(StageError, match="tokenizer.json is not the file that index.json lists"):
        verify_tokens(tiny_tokens)


def test_a_table_of_other_documents_is_named(tiny_tokens: Path) -> None:
    write_token_documents(documents_path(tiny_tokens, "train-00000.bin"), [("0" * 32, 0, 699)])
    with pytest.raises(StageError, match="train-00000.documents.parquet has 1 documents of 699 tokens"):
        verify_tokens(tiny_tokens)


@pytest.mark.parametrize(
    ("content", "complaint"), [(None, "does not exist"), (b"PAR1", "is no whole Parquet file")]
)
def test_a_broken_table_is_named(tiny_tokens: Path, content: bytes | None, complaint: str) -> None:
    table = documents_path(tiny_tokens, "train-00000.bin")
    table.unlink() if content is None else table.write_bytes(content)
    with pytest.raises(StageError, match=f"train-00000.documents.parquet {complaint}"):
        verify_tokens(tiny_tokens)


@pytest.mark.parametrize("content", [None, "{"])
def test_a_broken_index_is_named(tiny_tokens: Path, content: str | None) -> None:
    path = tiny_tokens / "index.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(StageError, match=r"index.json (does not exist|is not an index)"):
        verify_tokens(tiny_tokens)
