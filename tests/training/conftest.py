"""A tiny real tokenizer and model directory for the tests of training."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from models.config import ModelConfig
from models.hub import save_model
from models.initialization import initialise
from models.transformer import CausalLM
from tasks.corpus.encoding.packing import pack
from tasks.corpus.encoding.tables import write_documents, write_pieces
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


CONTEXT = 16
SIZES = {"train": ([300, 3, 397], [7, 470, 9, 15]), "validation": ([70, 60],)}


@pytest.fixture
def tiny_tokens(tiny_base: Path, tmp_path: Path) -> Path:
    """A token directory packed for a context of 16.

    Files of 700 and 501 tokens in 42 and 30 sequences to train on, one of two documents of 130 tokens to
    validate on.
    """
    directory = tmp_path / "data" / "tokens"
    directory.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tiny_base / name, directory / name)
    generator = np.random.default_rng(0)
    # A walk with small strides: the next token can be learnt.
    documents = {
        split: [[np.cumsum(generator.integers(1, 4, size)) % 300 for size in sizes] for sizes in files]
        for split, files in SIZES.items()
    }
    write_token_files(directory, documents, ChatTokenizer(tiny_base), CONTEXT)
    return directory


def write_token_files(
    directory: Path, documents: dict[str, list[list[np.ndarray]]], chat: ChatTokenizer, context: int
) -> None:
    """Write documents, by split and file, as the stage encode lays them out."""
    splits: dict[str, list[dict[str, Any]]] = {}
    for split, files in documents.items():
        splits[split] = []
        for number, held in enumerate(files):
            entry: dict[str, Any] = {
                "file": f"{split}-{number:05d}.bin", "sha256": "0",
                "part": f"documents/part-{number:05d}.parquet",
                "tokens": sum(map(len, held)), "documents": len(held), "bytes": 4 * sum(map(len, held)),
                "table": {"file": f"{split}-{number:05d}.documents.parquet", "sha256": "0"},
            }  # fmt: skip
            rows = {
                "id": pa.array([f"{document:032x}" for document in range(len(held))]),
                "copy": pa.array([0] * len(held)),
                "tokens": pa.array([len(tokens) for tokens in held]),
                "characters": pa.array([len(tokens) for tokens in held]),
            }
            write_documents(directory / entry["table"]["file"], rows)
            if split == "train":
                entry |= _write_packed(directory, entry["file"], held, context + 1, chat.pad_id)
            else:
                np.concatenate(held).astype("<u2").tofile(directory / entry["file"])
            splits[split].append(entry)
    index = {
        "dtype": "uint16", "vocab_size": chat.vocab_size, "context": context, "snapshot": "5eed",
        "special_tokens": {"bos": chat.bos_id, "eos": chat.eos_id, "pad": chat.pad_id},
        "begins": True, "ends": True, "tokenizer": [], "splits": splits,
    }  # fmt: skip
    (directory / "index.json").write_text(json.dumps(index), "utf-8")
    list_checksums(directory)


def list_checksums(directory: Path) -> None:
    """Write the checksums of the files as they are into the index that lists them."""
    index = json.loads((directory / "index.json").read_text())

    def fill(content: Any) -> None:
        for inner in content.values() if isinstance(content, dict) else content:
            if isinstance(inner, dict | list):
                fill(inner)
        if isinstance(content, dict) and "sha256" in content:
            content["sha256"] = hashlib.sha256((directory / content["file"]).read_bytes()).hexdigest()

    fill(index)
    (directory / "index.json").write_text(json.dumps(index), "utf-8")


def _write_packed(directory: Path, file: str, held: list[np.ndarray], size: int, pad: int) -> dict[str, Any]:
    packing = pack(np.array([len(tokens) for tokens in held]), size)
    rows_RS = np.full((packing.sequences, size), pad, "<u2")
    pieces = (packing.sequence_P, packing.position_P, packing.tokens_P, packing.document_P, packing.first_P)
    for sequence, position, tokens, document, first in zip(
        *(piece.tolist() for piece in pieces), strict=True
    ):
        rows_RS[sequence, position : position + tokens] = held[document][first : first + tokens]
    rows_RS.tofile(directory / file)
    names = ("sequence", "position", "tokens", "document", "first")
    columns = dict(zip(names, pieces, strict=True))
    spans = {"start": packing.first_P, "end": packing.first_P + packing.tokens_P}
    name = file.replace(".bin", ".pieces.arrow")
    write_pieces(directory / name, columns | spans)
    return {"sequences": packing.sequences, "pieces": {"file": name, "sha256": "0"}}
