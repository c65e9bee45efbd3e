import json
from pathlib import Path

import numpy as np
import pytest

from tasks.corpus.encoding.index import read_index
from tasks.corpus.encoding.tables import map_pieces
from tasks.stage import StageError
from tasks.training.token_files import PackedSequences, TokenStream


def stream_of(directory: Path, split: str = "validation") -> TokenStream:
    return TokenStream(directory, read_index(directory), split)


def packed(directory: Path) -> PackedSequences:
    return PackedSequences(directory, read_index(directory))


def file_of(directory: Path, name: str) -> np.ndarray:
    return np.fromfile(directory / name, "<u2").astype(np.int64)


def test_a_sequence_is_a_row_of_its_file(tiny_tokens):
    rows = np.concatenate([file_of(tiny_tokens, f"train-0000{n}.bin") for n in (0, 1)]).reshape(-1, 17)
    sequences = packed(tiny_tokens)
    assert len(sequences) == 72
    numbers = np.array([71, 0, 41, 42])
    assert sequences.read(numbers).tokens_BS.tolist() == rows[numbers].tolist()


def test_segments_number_the_pieces_of_a_row_and_padding_behind_them(tiny_tokens):
    sequences = packed(tiny_tokens)
    found = sequences.read(np.arange(72))
    for number in range(72):
        _, pieces = sequences.pieces(number)
        expected = [segment for segment, piece in enumerate(pieces) for _ in range(piece.tokens)]
        assert found.used_B[number] == len(expected)
        expected += [len(pieces)] * (17 - len(expected))
        assert found.segments_BS[number].tolist() == expected
    assert found.segments_BS.dtype == np.int32
    assert (found.used_B < 17).any()


def test_the_targets_are_all_tokens_but_the_first_of_each_piece(tiny_tokens):
    expected = []
    for number in (0, 1):
        rows = file_of(tiny_tokens, f"train-0000{number}.bin").reshape(-1, 17)
        pieces = map_pieces(tiny_tokens / f"train-0000{number}.pieces.arrow")
        for sequence, position, tokens in zip(
            *(pieces[n] for n in ("sequence", "position", "tokens")), strict=True
        ):
            expected += rows[sequence, position + 1 : position + tokens].tolist()
    found = np.concatenate(list(packed(tiny_tokens).targets()))
    assert sorted(found.tolist()) == sorted(expected)
    assert len(expected) == 1201 - sum(
        len(map_pieces(tiny_tokens / f"train-0000{number}.pieces.arrow")["first"]) for number in (0, 1)
    )


def test_a_stream_is_its_file_and_ends_with_the_split(tiny_tokens):
    expected = file_of(tiny_tokens, "validation-00000.bin")
    assert stream_of(tiny_tokens).read(120, 30).tolist() == expected[120:].tolist()
    assert stream_of(tiny_tokens).ends_D.tolist() == [70, 130]


def test_a_read_of_a_stream_crosses_files(tiny_tokens):
    index = json.loads((tiny_tokens / "index.json").read_text())
    index["splits"]["validation"] *= 2
    (tiny_tokens / "index.json").write_text(json.dumps(index))
    expected = np.tile(file_of(tiny_tokens, "validation-00000.bin"), 2)
    stream = stream_of(tiny_tokens)
    assert stream.read(100, 60).tolist() == expected[100:160].tolist()
    assert stream.ends_D.tolist() == [70, 130, 200, 260]
    assert stream.scored == 256


@pytest.mark.parametrize("size", [0, 999, 1426, 1430])
def test_a_file_of_another_size_than_the_index_says_is_named(tiny_tokens, size):
    path = tiny_tokens / "train-00000.bin"
    path.write_bytes(path.read_bytes().ljust(size, b"\0")[:size])
    with pytest.raises(StageError, match=rf"train-00000.bin has {size} bytes, but .* 714 tokens"):
        packed(tiny_tokens)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("train-00001.bin", "does not exist"),
        ("train-00001.pieces.arrow", "is no table of pieces"),
        ("validation-00000.bin", "does not exist"),
        ("validation-00000.documents.parquet", "is no table of a token file"),
    ],
)
def test_a_missing_file_is_named(tiny_tokens, name, message):
    (tiny_tokens / name).unlink()
    with pytest.raises(StageError, match=rf"{name} {message}"):
        (packed if name.startswith("train") else stream_of)(tiny_tokens)


@pytest.mark.parametrize("name", ["train-00001.pieces.arrow", "validation-00000.documents.parquet"])
def test_a_broken_table_is_named(tiny_tokens, name):
    (tiny_tokens / name).write_bytes(b"not a table")
    with pytest.raises(StageError, match=rf"{name} is no table"):
        (packed if name.startswith("train") else stream_of)(tiny_tokens)


def test_a_table_of_other_documents_is_named(tiny_tokens):
    index = json.loads((tiny_tokens / "index.json").read_text())
    index["splits"]["validation"][0]["table"] = index["splits"]["train"][0]["table"]
    (tiny_tokens / "index.json").write_text(json.dumps(index))
    with pytest.raises(StageError, match=r"documents of 700 tokens, but index.json says 130"):
        stream_of(tiny_tokens)


def test_a_token_outside_the_vocabulary_names_the_file(tiny_tokens):
    for name in ("train-00001.bin", "validation-00000.bin"):
        tokens = np.fromfile(tiny_tokens / name, "<u2")
        tokens[5] = 320
        tokens.tofile(tiny_tokens / name)
    with pytest.raises(StageError, match=r"train-00001.bin holds token 320, but the vocabulary has 320"):
        packed(tiny_tokens).read(np.arange(72))
    with pytest.raises(StageError, match=r"validation-00000.bin holds token 320, but the vocabulary has 320"):
        stream_of(tiny_tokens).read(0, 130)


def test_a_split_that_is_not_there_is_named(tiny_tokens):
    with pytest.raises(StageError, match=r"index.json lists no files of the split `held_out`"):
        stream_of(tiny_tokens, "held_out")


@pytest.mark.parametrize("content", ["{", "{}", '{"dtype": "int8"}', "\xff"])
def test_a_broken_index_is_named(tiny_tokens, content):
    (tiny_tokens / "index.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(StageError, match=r"index.json is not an index of token files"):
        read_index(tiny_tokens)


def test_32_bit_tokens_are_read_too(tiny_tokens):
    sequences, tokens = packed(tiny_tokens).read(np.arange(72)), stream_of(tiny_tokens).read(0, 130)
    for path in tiny_tokens.glob("*.bin"):
        np.fromfile(path, "<u2").astype("<u4").tofile(path)
    index = json.loads((tiny_tokens / "index.json").read_text()) | {"dtype": "uint32"}
    (tiny_tokens / "index.json").write_text(json.dumps(index))
    assert packed(tiny_tokens).read(np.arange(72)).tokens_BS.tolist() == sequences.tokens_BS.tolist()
    assert stream_of(tiny_tokens).read(0, 130).tolist() == tokens.tolist()
