"""A tiny real tokenizer and model directory for the tests of training."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from models.config import ModelConfig
from models.hub import save_model
from models.transformer import CausalLM, initialise
from tasks.corpus.token_documents import documents_path, write_token_documents
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
    config = ModelConfig.model_validate(
        {
            "vocab_size": 320,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 64,
            "bos_token_id": chat.bos_id,
            "eos_token_id": chat.eos_id,
            "pad_token_id": chat.pad_id,
        }
    )
    model = CausalLM(config)
    initialise(model, config, 0)
    save_model(model, directory)
    return directory


@pytest.fixture(scope="session")
def chat(tiny_base: Path) -> ChatTokenizer:
    return ChatTokenizer(tiny_base)


@pytest.fixture
def tiny_tokens(tiny_base: Path, tmp_path: Path) -> Path:
    """A token directory: two files of 700 and 501 tokens to train on, one of 130 to validate on."""
    directory = tmp_path / "data" / "tokens"
    directory.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tiny_base / name, directory / name)
    generator = np.random.default_rng(0)
    splits: dict[str, list[dict[str, Any]]] = {"train": [], "validation": []}
    for split, size in (("train", 700), ("train", 501), ("validation", 130)):
        name = f"{split}-{len(splits[split]):05d}.bin"
        # A walk with small strides: the next token can be learnt.
        tokens = np.cumsum(generator.integers(1, 4, size)) % 300
        content = tokens.astype("<u2").tobytes()
        (directory / name).write_bytes(content)
        write_token_documents(documents_path(directory, name), [("0" * 32, 0, size)])
        sha256 = hashlib.sha256(content).hexdigest()
        entry = {"file": name, "tokens": size, "documents": 1, "bytes": 4 * size, "sha256": sha256}
        splits[split].append(entry)
    chat = ChatTokenizer(tiny_base)
    index = {
        "dtype": "uint16",
        "vocab_size": 320,
        "special_tokens": {"bos": chat.bos_id, "eos": chat.eos_id, "pad": chat.pad_id},
        "splits": splits,
        "snapshot": "5eed",
    }
    (directory / "index.json").write_text(json.dumps(index), "utf-8")
    return directory
