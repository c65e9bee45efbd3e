from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from tasks.corpus.deduplication.embeddings import embed, load_embedding_model
from tasks.stage import StageError

WORDS = [
    "the",
    "mill",
    "turns",
    "and",
    "grain",
    "is",
    "ground",
    "between",
    "two",
    "stones",
    "by",
    "water",
    "or",
    "wind",
    "until",
    "it",
    "is",
    "flour",
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
TEXTS = [
    "the mill turns",
    "Grain is ground between two stones",
    "flour",
    "wind or water " * 20,
    "人工智能 mill",
]


@pytest.fixture(autouse=True)
def _threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a small network with random weights."""
    return write_model(tmp_path_factory.mktemp("plain"))


def write_model(directory: Path, network: Any = None, limit: int | None = None) -> Path:
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys([*SPECIAL, *WORDS]))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    given = {} if limit is None else {"model_max_length": limit}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        **given,
    ).save_pretrained(directory)
    torch.manual_seed(0)
    (network or BertModel(BertConfig(**sizes(len(vocabulary))))).save_pretrained(directory)
    return directory


def sizes(vocabulary: int = 40, filling: int = 0) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 32,
        "initializer_range": 0.3,
        "pad_token_id": filling,
    }


def sentence_model(directory: Path, network: Path, pooling: dict[str, Any], inside: str = "") -> Path:
    """The same network in the layout of sentence-transformers."""
    shutil.copytree(network, directory / inside, dirs_exist_ok=True)
    kinds = {"Transformer": inside, "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in kinds.items()]
    (directory / "modules.json").write_text(json.dumps(modules))
    (directory / "1_Pooling").mkdir()
    (directory / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return directory


def expected(directory: Path, text: str, pooling: str, tokens: int = 32) -> np.ndarray:
    """The vector of one text alone, straight from transformers."""
    tokenizer = PreTrainedTokenizerFast.from_pretrained(directory)
    ids = tokenizer(text, truncation=True, max_length=tokens, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        states = BertModel.from_pretrained(directory).eval()(ids).last_hidden_state[0]
    pooled = {"mean": states.mean(0), "cls": states[0], "max": states.max(0).values}[pooling]
    return (pooled / pooled.norm()).numpy()


def test_a_vector_is_the_mean_over_the_tokens_with_the_norm_1(plain: Path) -> None:
    found = embed(load_embedding_model(plain), TEXTS)
    assert found.vectors_DE.dtype == np.float32
    assert found.vectors_DE == pytest.approx(
        np.stack([expected(plain, text, "mean") for text in TEXTS]), abs=1e-6
    )
    assert np.linalg.norm(found.vectors_DE, axis=1) == pytest.approx([1] * len(TEXTS), abs=1e-6)


@pytest.mark.parametrize("inside", ["", "0_Transformer"])
@pytest.mark.parametrize(
    ("said", "pooling"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "cls"}, "cls"),
    ],
    ids=["mean", "cls", "max", "named"],
)
def test_a_directory_of_sentence_transformers_is_pooled_as_it_asks(
    plain: Path, tmp_path: Path, said: dict[str, Any], pooling: str, inside: str
) -> None:
    directory = sentence_model(tmp_path / "model", plain, {"word_embedding_dimension": 16} | said, inside)
    found = embed(load_embedding_model(directory), TEXTS)
    assert found.vectors_DE == pytest.approx(
        np.stack([expected(plain, text, pooling) for text in TEXTS]), abs=1e-6
    )


def test_the_texts_beside_one_do_not_show(plain: Path) -> None:
    loaded = load_embedding_model(plain)
    texts = [" ".join(WORDS[i % 7 : i % 7 + 1 + i % 11]) for i in range(60)] + TEXTS
    together = embed(loaded, texts).vectors_DE
    alone = np.concatenate([embed(loaded, [text]).vectors_DE for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(embed(loaded, texts[::-1]).vectors_DE[::-1], together, atol=1e-6)
    assert (embed(loaded, texts).vectors_DE == together).all()


def test_batches_of_any_size_give_the_same_vectors(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_embedding_model(plain)
    whole = embed(loaded, TEXTS).vectors_DE
    monkeypatch.setattr("tasks.corpus.deduplication.embeddings.TOKENS_AT_ONCE", 1)
    np.testing.assert_allclose(embed(loaded, TEXTS).vectors_DE, whole, atol=1e-6)


def test_texts_without_tokens_are_zeros(plain: Path) -> None:
    found = embed(load_embedding_model(plain), ["", None, " \n\t", "mill"])
    assert (found.vectors_DE[:3] == 0).all()
    assert found.vectors_DE[3].any()
    assert embed(load_embedding_model(plain), []).vectors_DE.shape == (0, 16)


def test_a_text_is_cut_at_the_length_and_that_is_said(plain: Path) -> None:
    loaded = load_embedding_model(plain, tokens=6)
    exact, longer = "the mill turns and", "the mill turns and grain"
    endless = exact + " grain" * 100_000
    found = embed(loaded, [exact, longer, endless])
    assert found.truncated_D.tolist() == [False, True, True]
    assert found.vectors_DE[1] == pytest.approx(expected(plain, longer, "mean", 6), abs=1e-6)
    np.testing.assert_allclose(found.vectors_DE, found.vectors_DE[[0, 0, 0]], atol=1e-6)


def test_the_length_is_the_least_that_the_directory_names(plain: Path, tmp_path: Path) -> None:
    assert load_embedding_model(plain).tokens == 32
    assert load_embedding_model(write_model(tmp_path / "tokenizer", limit=20)).tokens == 20
    sentence = sentence_model(tmp_path / "sentence", plain, {"pooling_mode": "mean"})
    (sentence / "sentence_bert_config.json").write_text('{"max_seq_length": 12}')
    assert load_embedding_model(sentence).tokens == 12
    with pytest.raises(StageError, match="reads 12 tokens, fewer than the 13 asked for"):
        load_embedding_model(sentence, tokens=13)


def test_positions_that_begin_behind_the_filling_are_not_overrun(tmp_path: Path) -> None:
    network = RobertaModel(RobertaConfig(**sizes(filling=1)))
    loaded = load_embedding_model(write_model(tmp_path, network))
    assert loaded.tokens == 30
    assert np.isfinite(embed(loaded, ["grain " * 100]).vectors_DE).all()


def test_lower_case_where_the_directory_asks_for_it(plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path / "model")
    tokenizer = Tokenizer.from_file(str(plain / "tokenizer.json"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.save(str(tmp_path / "model" / "tokenizer.json"))
    lower, upper = embed(load_embedding_model(tmp_path / "model"), ["mill", "MILL"]).vectors_DE
    assert not np.allclose(lower, upper)
    (tmp_path / "model" / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    lower, upper = embed(load_embedding_model(tmp_path / "model"), ["mill", "MILL"]).vectors_DE
    assert (lower == upper).all()


def test_the_digest_is_that_of_the_files(plain: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(plain, tmp_path / "copied")
    assert load_embedding_model(copied).digest == load_embedding_model(plain).digest
    (copied / "README.md").write_text("another")
    assert load_embedding_model(copied).digest != load_embedding_model(plain).digest


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="nowhere: there is no such directory"):
        load_embedding_model(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"], ids=["missing", "empty", "braces", "bytes"])
def test_a_missing_or_broken_file_is_named(
    plain: Path, tmp_path: Path, name: str, content: bytes | None
) -> None:
    directory = shutil.copytree(plain, tmp_path / "model")
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    said = "weights" if name == "model.safetensors" and content is not None else name
    with pytest.raises(StageError, match=said):
        load_embedding_model(directory)


def test_weights_in_a_format_that_can_run_code_are_not_read(plain: Path, tmp_path: Path) -> None:
    directory = shutil.copytree(plain, tmp_path / "model")
    (directory / "model.safetensors").unlink()
    torch.save({}, directory / "pytorch_model.bin")
    with pytest.raises(StageError, match="there is no model.safetensors"):
        load_embedding_model(directory)


def test_code_of_the_directory_is_not_run(plain: Path, tmp_path: Path) -> None:
    directory = shutil.copytree(plain, tmp_path / "model")
    config = json.loads((directory / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(StageError, match="give no model"):
        load_embedding_model(directory)
    assert not (tmp_path / "ran").exists()


def test_weights_that_would_be_drawn_at_random_are_refused(plain: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    directory = shutil.copytree(plain, tmp_path / "model")
    weights = load_file(directory / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, directory / "model.safetensors", {"format": "pt"})
    with pytest.raises(StageError, match="lack encoder.layer.1.output.dense.weight"):
        load_embedding_model(directory)


def test_a_tokenizer_larger_than_the_embedding_is_refused(tmp_path: Path) -> None:
    network = BertModel(BertConfig(**sizes(vocabulary=10)))
    with pytest.raises(StageError, match="the model's embedding only 10"):
        load_embedding_model(write_model(tmp_path, network))


@pytest.mark.parametrize(
    ("pooling", "said"),
    [
        ({"pooling_mode_lasttoken": True}, "the pooling is lasttoken"),
        ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True}, "cls_token and max_tokens"),
        ({}, "the pooling is not said"),
        ({"pooling_mode": "weightedmean"}, "must be one of mean, cls, max"),
    ],
    ids=["unknown", "two", "none", "unknown-name"],
)
def test_a_pooling_that_is_not_known_is_refused(
    plain: Path, tmp_path: Path, pooling: dict[str, Any], said: str
) -> None:
    with pytest.raises(StageError, match=said):
        load_embedding_model(sentence_model(tmp_path / "model", plain, pooling))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "is no JSON"),
        ("{}", "must hold a JSON list"),
        ("[]", "the modules are none"),
        ('[{"path": ""}]', "has no `type`"),
        ('[{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "p"}, '
         '{"type": "x.Dense", "path": "d"}]', "Transformer, Pooling, Dense"),
        ('[{"type": "x.Transformer", "path": ""}, {"type": "x.Pooling", "path": "p"}]', "no such file"),
    ],
    ids=["no-json", "no-list", "empty", "no-type", "dense", "no-pooling-file"],
)  # fmt: skip
def test_modules_that_make_other_vectors_are_refused(
    plain: Path, tmp_path: Path, content: str, said: str
) -> None:
    directory = shutil.copytree(plain, tmp_path / "model")
    (directory / "modules.json").write_text(content)
    with pytest.raises(StageError, match=said):
        load_embedding_model(directory)
