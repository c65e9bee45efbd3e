from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from tasks.corpus.encode import EncodeParams, encode
from tasks.corpus.mix import MixParams, mix
from tasks.corpus.snapshot import SnapshotParams, snapshot
from tasks.corpus.tokenizer import train_tokenizer
from tasks.resources import Resources
from tasks.stage import StageError
from tasks.training.chat import SPECIAL_TOKENS

TEXTS = [f"Document {i} speaks of ships, 雪 and don't; it ends with <|end|> as text." for i in range(40)]


@pytest.fixture
def encoded(layer: Callable[..., Path], tmp_path: Path, resources: Resources):
    def run(*texts: str, validation_share: float = 0.3, vocabulary: int = 400):
        mix(layer(*texts), tmp_path / "mixture", MixParams(validation_share=validation_share), resources)
        snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
        params = EncodeParams(vocabulary=vocabulary, context=64)
        return encode(tmp_path / "snapshot", tmp_path / "tokens", params, resources), tmp_path / "tokens"

    return run


def _documents(tokens: Path, split: str) -> list[list[int]]:
    index = json.loads((tokens / "index.json").read_text("utf-8"))
    documents: list[list[int]] = []
    for file in index["splits"][split]:
        for token in np.fromfile(tokens / file["file"], index["dtype"]).tolist():
            if token == index["special_tokens"]["bos"]:
                documents.append([])
            documents[-1].append(token)
    return documents


def test_every_document_is_begin_text_end(encoded) -> None:
    report, tokens = encoded(*TEXTS)
    index = json.loads((tokens / "index.json").read_text("utf-8"))
    tokenizer = Tokenizer.from_file(str(tokens / "tokenizer.json"))
    documents = _documents(tokens, "train") + _documents(tokens, "validation")
    assert {document[-1] for document in documents} == {index["special_tokens"]["eos"]}
    assert sorted(tokenizer.decode(document[1:-1]) for document in documents) == sorted(TEXTS)
    assert report.documents["train"] + report.documents["validation"] == 40


def test_the_index_tells_what_the_files_hold(encoded) -> None:
    report, tokens = encoded(*TEXTS)
    index = json.loads((tokens / "index.json").read_text("utf-8"))
    for split, files in index["splits"].items():
        documents = _documents(tokens, split)
        assert sum(file["tokens"] for file in files) == sum(map(len, documents)) == report.tokens[split]
        assert sum(file["documents"] for file in files) == len(documents)
        for file in files:
            assert hashlib.sha256((tokens / file["file"]).read_bytes()).hexdigest() == file["sha256"]
    assert sum(f["bytes"] for files in index["splits"].values() for f in files) == sum(
        len(text.encode()) for text in TEXTS
    )


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
    alone = train_tokenizer(
        (
            Tokenizer.from_file(str(tokens / "tokenizer.json")).decode(d[1:-1])
            for d in _documents(tokens, "train")
        ),
        400,
        list(SPECIAL_TOKENS),
    )
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
