from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tasks.code import ROOT
from tasks.corpus.encode import EncodeParams, encode
from tasks.corpus.encoding.index import read_index
from tasks.corpus.encoding.tokenizer_directory import digest
from tasks.corpus.mix import MixParams, mix
from tasks.corpus.snapshot import SnapshotParams, snapshot
from tasks.resources import Resources
from tasks.stage import StageError
from tasks.training.batches import PackedBatches
from tasks.training.chat import ChatTokenizer
from tasks.training.token_files import PackedSequences
from tasks.training.trace import Piece, trace

CONTEXT, BATCH, SEED = 16, 3, 5
TEXTS = [f"Ship {i} carries 雪 and naïve don't 😀 {'cargo ' * (i % 7)}; it ends." for i in range(30)]


def sample_texts(characters: int) -> list[str]:
    """The beginnings of some texts of the sample, the last of them Chinese."""

    def read(name: str) -> list[str]:
        with gzip.open(ROOT / "sample" / "corpus" / name, "rt", encoding="utf-8") as lines:
            return [json.loads(line)["raw"][:characters] for line in lines]

    texts = (
        read("books.jsonl.gz")[::40] + read("python-docs.jsonl.gz")[::60] + read("handbook.jsonl.gz")[129:132]
    )
    assert sum("\u4e00" <= character <= "\u9fff" for character in texts[-1]) > 100
    return texts


@pytest.fixture
def frozen(layer: Callable[..., Path], tmp_path: Path, resources: Resources) -> Callable[..., Path]:
    def make(*texts: str) -> Path:
        params = MixParams(validation_share=0.1, epochs={"docs": 2})
        mix(layer(*texts), tmp_path / "mixture", params, resources)
        snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
        return tmp_path

    return make


@pytest.fixture
def encoded(frozen: Callable[..., Path], resources: Resources) -> Path:
    folder = frozen(*TEXTS)
    encode(folder / "snapshot", folder / "tokens", EncodeParams(vocabulary=350, context=CONTEXT), resources)
    return folder


def traced(folder: Path, step: int) -> list[Piece]:
    return list(trace(step, folder / "tokens", folder / "snapshot", CONTEXT, BATCH, SEED))


def rows_of(folder: Path, step: int) -> np.ndarray:
    """The tokens of a step, inputs and the last target."""
    sequences = PackedSequences(folder / "tokens", read_index(folder / "tokens"))
    batch = PackedBatches(sequences, CONTEXT, BATCH, SEED).at_step(step)
    return np.concatenate([batch["tokens"].numpy(), batch["targets"][:, -1:].numpy()], axis=1)


def compare(folder: Path, steps: range) -> int:
    """Hold the tokens of every piece of some steps against its characters; how many pieces there were."""
    tokenizer = ChatTokenizer(folder / "tokens")
    texts = {row["id"]: row["text"] for row in pq.read_table(folder / "snapshot" / "documents").to_pylist()}
    pieces = 0
    for step in steps:
        rows = rows_of(folder, step)
        for piece in traced(folder, step):
            seen = rows[piece.sequence, piece.position : piece.position + piece.tokens].tolist()
            decoded = tokenizer.decode(seen)
            # A character that is cut in two is whole in the piece, and replaced in what its half decodes to.
            inside = decoded.strip("\ufffd")
            assert piece.text == texts[piece.document][piece.start : piece.end]
            assert inside in piece.text
            assert len(piece.text) <= len(inside) + 2
            assert decoded.startswith("\ufffd") or piece.text.startswith(inside)
            assert decoded.endswith("\ufffd") or piece.text.endswith(inside)
            pieces += 1
    return pieces


@pytest.mark.parametrize("step", [1, 2, 40])
def test_the_pieces_of_a_step_are_all_its_tokens_but_padding(encoded: Path, step: int) -> None:
    pad = ChatTokenizer(encoded / "tokens").pad_id
    rows = rows_of(encoded, step)
    assert sum(piece.tokens for piece in traced(encoded, step)) == (rows != pad).sum()


def test_the_tokens_of_a_step_are_the_characters_of_the_snapshot(encoded: Path) -> None:
    assert compare(encoded, range(1, 60)) > 200


def test_so_they_are_in_real_texts_of_several_slices_under_a_small_vocabulary(
    frozen: Callable[..., Path], resources: Resources
) -> None:
    folder = frozen(*sample_texts(10_000))
    encode(folder / "snapshot", folder / "tokens", EncodeParams(vocabulary=400, context=CONTEXT), resources)
    assert compare(folder, range(1, 150)) > 300


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_so_they_are_under_tokenizers_of_other_families(
    frozen: Callable[..., Path], resources: Resources, tmp_path: Path, family: str
) -> None:
    given = tmp_path / family
    make_tokenizer(family, given)
    folder = frozen(*TEXTS, *sample_texts(3_500)[-2:])
    params = EncodeParams(tokenizer=str(given), tokenizer_digest=digest(given), context=CONTEXT)
    encode(folder / "snapshot", folder / "tokens", params, resources)
    tokenizer = ChatTokenizer(folder / "tokens")
    for step in range(1, 40):
        rows = rows_of(folder, step)
        for piece in traced(folder, step):
            seen = rows[piece.sequence, piece.position : piece.position + piece.tokens].tolist()
            marks = {tokenizer.bos_id, tokenizer.eos_id}
            whole = [token for token in seen if token not in marks]
            again = tokenizer.encode(piece.text)
            # Alone, the first and last word may be cut otherwise: what lies between is the same.
            assert " ".join(map(str, whole[8:-8])) in " ".join(map(str, again))


def make_tokenizer(family: str, directory: Path) -> None:
    """A small tokenizer as of Llama (pieces, bytes for what is missing) or BERT (words, unknown ones)."""
    if family == "llama":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
        special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = content["added_tokens"][:1]  # bytes are pieces of the model
    tokenizer = Tokenizer.from_str(json.dumps(content))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(str(directory))


def test_both_copies_of_a_document_are_told_apart(encoded: Path) -> None:
    seen = {(piece.document, piece.copy) for step in range(1, 200) for piece in traced(encoded, step)}
    documents = {document for document, _ in seen}
    assert seen == {(document, copy) for document in documents for copy in (0, 1)}


def test_a_snapshot_of_other_documents_is_refused(encoded: Path) -> None:
    manifest = encoded / "snapshot" / "manifest.json"
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(content | {"snapshot": "f" * 64}))
    with pytest.raises(StageError, match="was made from snapshot .* is ffffffffffff"):
        traced(encoded, 1)


def test_a_part_that_is_missing_is_named(encoded: Path) -> None:
    (part,) = (encoded / "snapshot" / "documents").glob("*.parquet")
    part.unlink()
    with pytest.raises(StageError, match="part-00000.parquet does not exist"):
        traced(encoded, 1)


def test_steps_are_counted_from_one(encoded: Path) -> None:
    with pytest.raises(StageError, match="there is no step 0"):
        traced(encoded, 0)
