from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tasks.corpus.encode import EncodeParams, encode
from tasks.corpus.mix import MixParams, mix
from tasks.corpus.snapshot import SnapshotParams, snapshot
from tasks.resources import Resources
from tasks.stage import StageError
from tasks.training.batches import PackedBatches, TokenStream, read_index
from tasks.training.chat import ChatTokenizer
from tasks.training.trace import Piece, trace

CONTEXT, BATCH, SEED = 16, 3, 5
TEXTS = [f"Ship {i} carries 雪 and naïve don't {'cargo ' * (i % 7)}; it ends." for i in range(30)]


@pytest.fixture
def encoded(layer: Callable[..., Path], tmp_path: Path, resources: Resources) -> Path:
    params = MixParams(validation_share=0.1, epochs={"docs": 2})
    mix(layer(*TEXTS), tmp_path / "mixture", params, resources)
    snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
    encode(tmp_path / "snapshot", tmp_path / "tokens", EncodeParams(vocabulary=350), resources)
    return tmp_path


def traced(folder: Path, step: int) -> list[Piece]:
    return list(trace(step, folder / "tokens", folder / "snapshot", CONTEXT, BATCH, SEED))


@pytest.mark.parametrize("step", [1, 2, 40])
def test_the_pieces_are_the_tokens_of_the_batch(encoded: Path, step: int) -> None:
    tokens = encoded / "tokens"
    tokenizer = ChatTokenizer(tokens)
    batches = PackedBatches(TokenStream(tokens, read_index(tokens), "train"), CONTEXT, BATCH, SEED)
    batch = batches.at_step(step)
    rows = np.concatenate([batch["tokens"].numpy(), batch["targets"][:, -1:].numpy()], axis=1)
    pieces = traced(encoded, step)
    assert sum(piece.tokens for piece in pieces) == rows.size
    for piece in pieces:
        seen = rows[piece.sequence, piece.position : piece.position + piece.tokens].tolist()
        marks = {tokenizer.bos_id, tokenizer.eos_id}
        decoded = tokenizer.decode([token for token in seen if token not in marks])
        # A character that the row cuts in two is whole in the piece.
        assert decoded.strip("\ufffd") in piece.text
        assert len(piece.text) <= len(decoded) + 1
        (whole,) = {text for text in TEXTS if text[piece.start : piece.end] == piece.text} & {
            text for text in TEXTS if f"Ship {number(piece, encoded)} " in text
        }
        assert whole


def number(piece: Piece, folder: Path) -> str:
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "snapshot" / "documents").to_pylist()
    return next(row["text"].split()[1] for row in rows if row["id"] == piece.document)


def test_both_copies_of_a_document_are_told_apart(encoded: Path) -> None:
    seen = {(piece.document, piece.copy) for step in range(1, 60) for piece in traced(encoded, step)}
    documents = {document for document, _ in seen}
    assert seen == {(document, copy) for document in documents for copy in (0, 1)}


def test_a_snapshot_of_other_documents_is_refused(encoded: Path) -> None:
    (part,) = (encoded / "snapshot" / "documents").glob("*.parquet")
    part.unlink()
    with pytest.raises(StageError, match="part-00000.parquet does not exist"):
        traced(encoded, 1)


def test_steps_are_counted_from_one(encoded: Path) -> None:
    with pytest.raises(StageError, match="there is no step 0"):
        traced(encoded, 0)


def test_the_tables_list_every_document_with_its_tokens(encoded: Path) -> None:
    import pyarrow.parquet as pq

    index = json.loads((encoded / "tokens" / "index.json").read_text("utf-8"))
    for files in index["splits"].values():
        for file in files:
            table = pq.read_table(encoded / "tokens" / file["file"].replace(".bin", ".documents.parquet"))
            assert table.num_rows == file["documents"]
            assert sum(table.column("tokens").to_pylist()) == file["tokens"]
