from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from tasks.corpus.encode import EncodeParams, encode
from tasks.corpus.encoding.index import read_index, token_type
from tasks.corpus.encoding.slices import SLICE_CHARACTERS
from tasks.corpus.encoding.tokenizer_directory import digest
from tasks.corpus.mix import MixParams, mix
from tasks.corpus.snapshot import SnapshotParams, snapshot
from tasks.corpus.tokenizer import train_tokenizer
from tasks.resources import Resources
from tasks.stage import StageError
from tasks.training.chat import SPECIAL_TOKENS, ChatTokenizer

TEXTS = [f"Document {i} speaks of ships, 雪 and don't; it ends with <|end|> as text." for i in range(40)]


@pytest.fixture
def encoded(layer: Callable[..., Path], tmp_path: Path, resources: Resources):
    def run(*texts: str, validation_share: float = 0.3, vocabulary: int = 400, **given: Any):
        mix(layer(*texts), tmp_path / "mixture", MixParams(validation_share=validation_share), resources)
        snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
        params = EncodeParams.model_validate({"vocabulary": vocabulary, "context": 64} | given)
        return encode(tmp_path / "snapshot", tmp_path / "tokens", params, resources), tmp_path / "tokens"

    return run


@pytest.fixture
def rewritten(encoded, tmp_path: Path, resources: Resources):
    """Encode a snapshot of other texts, which may be broken ones, in place of those of whole documents."""

    def run(*texts: bytes, **given: Any):
        encoded(*(f"text {number}" for number in range(len(texts))), validation_share=0)
        (part,) = (tmp_path / "mixture" / "documents").iterdir()
        rows = pq.read_table(part)
        column = pa.array(texts, pa.binary()).view(pa.string())
        pq.write_table(rows.set_column(rows.column_names.index("text"), "text", column), part)
        snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
        adopted = tmp_path / "given"
        (tmp_path / "tokens").rename(adopted)
        params = {"tokenizer": str(adopted), "tokenizer_digest": digest(adopted), "context": 64}
        params = EncodeParams.model_validate(params | given)
        return encode(tmp_path / "snapshot", tmp_path / "tokens", params, resources), tmp_path / "tokens"

    return run


def _documents(tokens: Path, split: str) -> list[list[int]]:
    """The tokens of every document, put together from its pieces where it is packed."""
    index = read_index(tokens)
    documents: list[list[int]] = []
    for file in index.splits[split]:
        held: list[list[int]] = [[] for _ in range(file.documents)]
        ids = np.fromfile(tokens / file.file, index.dtype)
        if file.pieces is None:
            table = pq.read_table(tokens / file.table.file)
            ends = np.cumsum(table.column("tokens").to_numpy())
            held = [ids.tolist() for ids in np.split(ids, ends[:-1])]
        else:
            pieces = feather.read_table(tokens / file.pieces.file).to_pylist()
            rows = ids.reshape(file.sequences or 0, index.context + 1)
            for piece in sorted(pieces, key=lambda piece: (piece["document"], piece["first"])):
                assert len(held[piece["document"]]) == piece["first"]
                row, begin = rows[piece["sequence"]], piece["position"]
                held[piece["document"]] += row[begin : begin + piece["tokens"]].tolist()
        documents += held
    return documents


def test_every_document_is_begin_text_end(encoded) -> None:
    report, tokens = encoded(*TEXTS)
    chat = ChatTokenizer(tokens)
    documents = _documents(tokens, "train") + _documents(tokens, "validation")
    assert {(document[0], document[-1]) for document in documents} == {(chat.bos_id, chat.eos_id)}
    assert sorted(chat.decode(document[1:-1]) for document in documents) == sorted(TEXTS)
    assert all({0, 1}.isdisjoint(document[1:-1]) for document in documents)
    assert report.documents["train"] + report.documents["validation"] == 40


@pytest.mark.parametrize("bos", [True, False])
@pytest.mark.parametrize("eos", [True, False])
def test_a_document_has_one_begin_and_one_end_if_it_is_asked_for(encoded, bos: bool, eos: bool) -> None:
    _, tokens = encoded(*TEXTS, bos=bos, eos=eos)
    chat, index = ChatTokenizer(tokens), read_index(tokens)
    for document in _documents(tokens, "train") + _documents(tokens, "validation"):
        assert document.count(chat.bos_id) == (document[0] == chat.bos_id) == bos
        assert document.count(chat.eos_id) == (document[-1] == chat.eos_id) == eos
    assert (index.begins, index.ends) == (bos, eos)


def test_the_index_tells_what_the_files_hold(encoded) -> None:
    report, tokens = encoded(*TEXTS)
    index = read_index(tokens)
    for split, files in index.splits.items():
        documents = _documents(tokens, split)
        assert sum(file.tokens for file in files) == sum(map(len, documents)) == report.tokens[split]
        assert sum(file.documents for file in files) == len(documents)
    assert sum(file.bytes for files in index.splits.values() for file in files) == sum(
        len(text.encode()) for text in TEXTS
    )


def test_the_index_lists_every_other_file_with_its_hash(encoded) -> None:
    _, tokens = encoded(*TEXTS)
    listed: dict[str, str] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict) and {"file", "sha256"} <= set(value):
            listed[value["file"]] = value["sha256"]
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(inner)

    walk(json.loads((tokens / "index.json").read_text("utf-8")))
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tokens.iterdir()}
    hashes.pop("index.json")
    assert listed == hashes


def test_the_report_tells_sequences_padding_and_cuts(encoded) -> None:
    report, tokens = encoded(*TEXTS, TEXTS[0] * 9)
    index = read_index(tokens)
    (file,) = index.splits["train"]
    ids = np.fromfile(tokens / file.file, index.dtype)
    assert report.sequences == file.sequences == len(ids) / 65
    assert report.padding_share == pytest.approx((ids == index.special_tokens.pad).mean(), abs=1e-6)
    longer = [len(document) > 65 for document in _documents(tokens, "train")]
    assert report.cut_share == pytest.approx(np.mean(longer), abs=1e-6)
    assert 0 < report.cut_share < 1


def test_documents_longer_and_shorter_than_a_slice_have_the_tokens_of_the_library(encoded) -> None:
    book = " ".join(TEXTS) * 20
    _, tokens = encoded(*TEXTS, book, validation_share=0)
    tokenizer = Tokenizer.from_file(str(tokens / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    expected = [[0, *tokenizer.encode(text).ids, 1] for text in [*TEXTS, book]]
    assert len(book) > 5 * SLICE_CHARACTERS
    assert sorted(_documents(tokens, "train")) == sorted(expected)


@pytest.mark.parametrize(
    "text",
    ["\ufffd and \x00 and \u200b", "雪", "x" * 50_000, "\n\n\n"],
    ids=["replaced", "one character", "one word", "lines"],
)
def test_one_document_of_any_text_is_encoded(encoded, text: str) -> None:
    report, tokens = encoded(text, validation_share=0)
    chat = ChatTokenizer(tokens)
    (document,) = _documents(tokens, "train")
    assert (chat.decode(document[1:-1]), report.documents) == (text, {"train": 1, "validation": 0})


def test_an_empty_document_is_begin_and_end(rewritten) -> None:
    report, tokens = rewritten(b"")
    assert _documents(tokens, "train") == [[0, 1]]
    assert report.tokens == {"train": 2, "validation": 0}


def test_an_empty_document_without_marks_has_no_tokens_and_is_listed(rewritten) -> None:
    report, tokens = rewritten(b"", b"a text", bos=False, eos=False)
    assert [bool(document) for document in _documents(tokens, "train")] == [False, True]
    assert report.documents["train"] == 2


def test_nothing_but_empty_documents_without_marks_is_refused(rewritten, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="have no tokens: all are empty"):
        rewritten(b"", bos=False, eos=False)
    assert not (tmp_path / "tokens").exists()


def test_a_snapshot_without_training_documents_is_refused(encoded, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="has no training document: see mix.epochs"):
        encoded()
    assert not (tmp_path / "tokens").exists()


def test_a_text_that_is_not_utf_8_names_its_document(rewritten, tmp_path: Path) -> None:
    with pytest.raises(
        StageError, match=r"part-00000.parquet: the text of document \w{32} \(byte 5\) is not"
    ):
        rewritten(b"whole", b"half \xed\xa0\x80", b"whole")
    assert not (tmp_path / "tokens").exists()


def test_a_full_disk_leaves_the_tokens_as_they_were(
    encoded, tmp_path: Path, resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tokens = encoded(*TEXTS)
    before = {path.name: path.read_bytes() for path in tokens.iterdir()}

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tasks.corpus.encode.write_index", full)
    with pytest.raises(OSError, match="No space left"):
        encode(tmp_path / "snapshot", tokens, EncodeParams(vocabulary=300, context=64), resources)
    assert {path.name: path.read_bytes() for path in tokens.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_vocabularies_above_65_536_take_32_bits() -> None:
    assert [token_type(size) for size in (300, 65_536, 65_537)] == ["uint16", "uint16", "uint32"]


def test_transformers_loads_the_tokenizer_with_the_same_ids(encoded) -> None:
    _, tokens = encoded(*TEXTS)
    theirs = AutoTokenizer.from_pretrained(tokens)
    ours = Tokenizer.from_file(str(tokens / "tokenizer.json"))
    text = "Ships in the 雪: 1234 don't"
    assert theirs.encode(text, add_special_tokens=False) == ours.encode(text).ids
    assert (theirs.bos_token, theirs.eos_token, theirs.pad_token) == ("<|begin|>", "<|end|>", "<|pad|>")


def test_what_is_held_out_teaches_the_tokenizer_nothing(encoded, tmp_path: Path) -> None:
    report, tokens = encoded(*TEXTS)
    assert report.tokens["validation"] > 0
    chat = ChatTokenizer(tokens)
    texts = [chat.decode(document[1:-1]) for document in _documents(tokens, "train")]
    alone = train_tokenizer(iter(texts), 400, list(SPECIAL_TOKENS))
    assert alone.get_vocab() == Tokenizer.from_file(str(tokens / "tokenizer.json")).get_vocab()


def test_a_flipped_bit_in_the_snapshot_stops_the_stage(encoded, tmp_path: Path, resources: Resources) -> None:
    encoded(*TEXTS)
    part = tmp_path / "snapshot" / "documents" / "part-00000.parquet"
    content = bytearray(part.read_bytes())
    content[100] ^= 1
    part.write_bytes(content)
    with pytest.raises(StageError, match="part-00000.parquet is not the file"):
        encode(tmp_path / "snapshot", tmp_path / "again", EncodeParams(), resources)
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "emoji 👩‍👩‍👧 and 雪",
        "tabs\t\tand   spaces \n\n\n lines\r\n",
        "1234567890",
        "def f(x):\n    return x",
    ],
)
def test_bytes_come_back_as_they_were(text: str) -> None:
    tokenizer: Any = train_tokenizer(iter(TEXTS), 400, list(SPECIAL_TOKENS))
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_tokens_are_counted_by_source_kind_domain_and_language(
    layer: Callable[..., Path], tmp_path: Path, resources: Resources
) -> None:
    documents = [
        {"text": TEXTS[0], "source": "one", "kind": "web", "domain": "legal", "language": "en"},
        {"text": TEXTS[1], "source": "two", "kind": "web", "domain": "legal", "language": None},
        {"text": TEXTS[2], "source": "two", "kind": "book", "domain": "legal", "language": "en"},
    ]
    mix(layer(*documents), tmp_path / "mixture", MixParams(validation_share=0), resources)
    snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
    report = encode(tmp_path / "snapshot", tmp_path / "tokens", EncodeParams(vocabulary=300), resources)
    total = sum(report.tokens.values())
    assert {group: set(counts) for group, counts in report.tokens_by.items()} == {
        "source": {"one", "two"}, "kind": {"book", "web"}, "domain": {"legal"}, "language": {"en", "und"},
    }  # fmt: skip
    assert {sum(counts.values()) for counts in report.tokens_by.values()} == {total}
    tokenizer = Tokenizer.from_file(str(tmp_path / "tokens" / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    assert report.tokens_by["source"]["one"] == len(tokenizer.encode(TEXTS[0]).ids) + 2
