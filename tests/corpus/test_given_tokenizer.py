"""A tokenizer made elsewhere, from the snapshot to a model that transformers loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tasks.corpus.encode import EncodeParams, EncodeReport, encode
from tasks.corpus.encoding.index import read_index
from tasks.corpus.encoding.tokenizer_directory import digest
from tasks.corpus.mix import MixParams, mix
from tasks.corpus.snapshot import SnapshotParams, snapshot
from tasks.resources import Resources, TrainingResources
from tasks.stage import StageError
from tasks.training.chat import Message
from tasks.training.model_directory import open_model
from tasks.training.model_params import ModelParams
from tasks.training.pretrain import PretrainParams, pretrain
from tasks.training.token_files import PackedSequences, TokenStream

TEXTS = [f"Document {i} of the mill: <|endoftext|> and 雪 {'grain ' * (i % 9)}" for i in range(40)]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """As GPT-2's: bytes, and one special token."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>")
    fast.save_pretrained(str(tmp_path / "given"))
    return tmp_path / "given"


@pytest.fixture
def encoded(layer: Callable[..., Path], tmp_path: Path, resources: Resources):
    def run(directory: Path, *texts: str, **params: Any) -> EncodeReport:
        mix(layer(*texts), tmp_path / "mixture", MixParams(validation_share=0.3), resources)
        snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
        usual = {"tokenizer": str(directory), "tokenizer_digest": digest(directory), "context": 32}
        return encode(
            tmp_path / "snapshot", tmp_path / "tokens", EncodeParams.model_validate(usual | params), resources
        )

    return run


def test_it_travels_to_the_model_with_the_tokens_of_dialogues(encoded, given: Path, tmp_path: Path) -> None:
    report = encoded(given, *TEXTS, bos=False)
    network = ModelParams(hidden_size=32, layers=1, heads=2, kv_heads=1, intermediate_size=32)
    params = PretrainParams(model=network, context=32, steps=2, batch_size=2, micro_batch_size=2)
    resources = Resources(work=tmp_path / "work", training=TrainingResources(threads=1))
    pretrain(tmp_path / "tokens", tmp_path / "base", params, resources)
    model, chat = open_model(tmp_path / "base")
    theirs, before = (
        AutoTokenizer.from_pretrained(tmp_path / "base"),
        AutoTokenizer.from_pretrained(given),
    )
    for text in TEXTS[:3]:
        assert chat.encode(text) == theirs.encode(text, split_special_tokens=True)
        assert chat.encode(text) == before.encode(text, split_special_tokens=True)
    assert model.config.vocab_size == report.vocabulary == len(before) + 4
    assert chat.prompt([Message(role="user", content="x")])[-1] == chat.assistant_id
    assert chat.eos_id == before.eos_token_id


def test_without_begin_tokens_documents_are_still_told_apart(encoded, given: Path, tmp_path: Path) -> None:
    report = encoded(given, *TEXTS, bos=False, eos=False)
    index = read_index(tmp_path / "tokens")
    stream = TokenStream(tmp_path / "tokens", index, "validation")
    special = {index.special_tokens.bos, index.special_tokens.eos}
    assert special.isdisjoint(stream.read(0, len(stream)).tolist())
    assert len(stream.ends_D) == report.documents["validation"] > 1


def test_a_large_vocabulary_is_written_and_read_in_32_bits(encoded, tmp_path: Path) -> None:
    words = {"[UNK]": 0} | {f"w{number}": number for number in range(1, 70_000)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    fast.save_pretrained(str(tmp_path / "words"))
    texts = [f"w69999 w1 w{number} nothing w65537" for number in range(60_000, 60_020)]
    report = encoded(tmp_path / "words", *texts)
    index = read_index(tmp_path / "tokens")
    sequences = PackedSequences(tmp_path / "tokens", index)
    found = sequences.read(np.arange(len(sequences))).tokens_BS
    assert index.dtype == "uint32"
    assert {69_999, 1, 65_537, 0} <= set(found.flatten().tolist())
    assert report.vocabulary == 70_005
    assert report.languages["en"].unknown_share == pytest.approx(1 / 5)


def test_another_tokenizer_than_the_parameters_say_is_refused_before_any_work(
    encoded, given: Path, tmp_path: Path
) -> None:
    with pytest.raises(StageError, match=r"tokenizer_digest is not set, but .* has the digest \w{64}"):
        encoded(given, *TEXTS[:3], tokenizer_digest=None)
    assert not (tmp_path / "tokens").exists()


def test_a_digest_without_a_tokenizer_is_refused() -> None:
    with pytest.raises(ValueError, match="tokenizer_digest is given, but no tokenizer that it is of"):
        EncodeParams(tokenizer_digest="0" * 64)


@pytest.mark.parametrize("parts", [1, 3])
def test_the_parts_of_a_snapshot_are_packed_by_themselves(
    encoded, given: Path, tmp_path: Path, resources: Resources, parts: int
) -> None:
    import pyarrow.parquet as pq

    encoded(given, *TEXTS)
    (part,) = (tmp_path / "mixture" / "documents").iterdir()
    rows = pq.read_table(part)
    for number in range(parts):
        pq.write_table(rows, part.with_name(f"part-{number:05d}.parquet"))
    snapshot(tmp_path / "mixture", tmp_path / "snapshot", SnapshotParams(), resources)
    params = EncodeParams(tokenizer=str(given), tokenizer_digest=digest(given), context=32)
    encode(tmp_path / "snapshot", tmp_path / "parts", params, resources)
    files = read_index(tmp_path / "parts").splits["train"]
    first = read_index(tmp_path / "tokens").splits["train"][0]
    assert [file.file for file in files] == [f"train-{number:05d}.bin" for number in range(parts)]
    assert {(file.sha256, file.pieces and file.pieces.sha256) for file in files} == {
        (first.sha256, first.pieces and first.pieces.sha256)
    }
