"""A tiny real tokenizer and model directory for the tests of training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from models.config import ModelConfig
from models.hub import save_model
from models.transformer import CausalLM, initialise
from tasks.training.chat import SPECIAL_TOKENS, ChatTokenizer, tokenizer_config

TEXTS = [
    "What is the capital of Sweden? Stockholm is the capital of Sweden.",
    "How are you today? I am fine, thank you. And you? Schön, dich zu sehen.",
    "你是什么语言编写的 Python",
]


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory: two layers, 64 positions, an untrained network, a byte-level BPE of 320 tokens."""
    directory = tmp_path_factory.mktemp("tiny") / "base"
    directory.mkdir()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(64)), "utf-8")
    chat = ChatTokenizer(directory)
    config = ModelConfig(
        vocab_size=320,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=chat.bos_id,
        eos_token_id=chat.eos_id,
        pad_token_id=chat.pad_id,
    )
    model = CausalLM(config)
    initialise(model, config, 0)
    save_model(model, directory)
    return directory


@pytest.fixture(scope="session")
def chat(tiny_base: Path) -> ChatTokenizer:
    return ChatTokenizer(tiny_base)
