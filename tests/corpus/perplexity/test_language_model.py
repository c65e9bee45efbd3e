from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch.nn import functional as F

from models.config import ModelConfig
from models.hub import save_model
from models.initialization import initialise
from models.transformer import CausalLM
from tasks.corpus.perplexity.language_model import load_language_model, score
from tasks.stage import StageError

TEXTS = ["The mill turns.", "", None, "grain " * 400, "x"]


@pytest.fixture(autouse=True)
def _threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def write(directory: Path, bos: int | None = 1, vocabulary: int = 260) -> Path:
    config = ModelConfig(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        initializer_range=0.2,
        bos_token_id=bos,
    )
    model = CausalLM(config)
    initialise(model, config, torch.Generator().manual_seed(0))
    save_model(model, directory)
    bytes_ = {char: 2 + n for n, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab={"<pad>": 0, "<s>": 1} | bytes_, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


@pytest.mark.parametrize("bos", [1, None])
def test_perplexity_is_that_of_the_first_tokens_each_predicted_from_those_before_it(tmp_path: Path, bos):
    loaded = load_language_model(write(tmp_path, bos), tokens=64)
    for text, found in zip(TEXTS, score(loaded, TEXTS, batch_size=2), strict=True):
        ids = ([] if bos is None else [bos]) + loaded.tokenizer.encode(text or "").ids
        ids = torch.tensor([ids[:64]])
        if ids.shape[1] < 2:
            assert math.isnan(found)
            continue
        with torch.no_grad():
            expected = F.cross_entropy(loaded.model(ids[:, :-1])[0], ids[0, 1:]).exp().item()
        assert found == pytest.approx(expected, rel=1e-4)


def test_the_batch_does_not_show(tmp_path: Path):
    loaded = load_language_model(write(tmp_path), tokens=32)
    np.testing.assert_allclose(
        score(loaded, TEXTS, batch_size=1), score(loaded, TEXTS, batch_size=5), rtol=1e-5
    )
    assert len(score(loaded, [])) == 0


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"", b"{}"])
def test_a_missing_or_broken_file_is_named(tmp_path: Path, name: str, content: bytes | None):
    write(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(StageError, match=name):
        load_language_model(tmp_path, tokens=16)


def test_a_model_narrower_than_what_is_to_be_scored_is_refused(tmp_path: Path):
    with pytest.raises(StageError, match="reads 64 tokens, fewer than the 65"):
        load_language_model(write(tmp_path), tokens=65)


def test_a_tokenizer_larger_than_the_embedding_is_refused(tmp_path: Path):
    with pytest.raises(StageError, match="258 tokens, the model's embedding only 200"):
        load_language_model(write(tmp_path, vocabulary=200), tokens=16)
