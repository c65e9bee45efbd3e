"""A tiny run, made for real: a tokenizer, tokens, instructions, three language models and a reward model."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers import models as tokenizer_models

from models.config import ModelConfig
from models.heads import RewardModel
from models.hub import save_model
from models.initialization import initialise
from models.transformer import CausalLM
from tasks.corpus.encoding.index import SpecialTokens, TokenIndex, write_index
from tasks.corpus.encoding.parts import encode_part
from tasks.corpus.encoding.slices import SLICE_CHARACTERS
from tasks.corpus.encoding.splits import GROUPS, Layout
from tasks.corpus.encoding.token_bytes import token_bytes
from tasks.corpus.fertility import token_kinds
from tasks.training.chat import SPECIAL_TOKENS, ChatTokenizer, tokenizer_config

CONTEXT = 48
TRAIN = ["The mill grinds the grain.", "The miller went to the mill by the river; the river was cold.", "été"]
VALIDATION = ["The river turns the wheel. " * 9, "Grain.", "", "Flour — à la meule, naïve 水 😀."]
INSTRUCTIONS = [
    {"instruction": "What grinds?", "output": "The mill.", "split": "train"},
    {"instruction": "What turns the wheel?", "output": "The river.", "split": "held_out"},
    {"instruction": "Who went?", "input": "The miller went.", "output": "The miller.", "split": "held_out"},
    {
        "messages": [
            {"role": "user", "content": "Is it cold?"},
            {"role": "assistant", "content": "It was."},
            {"role": "user", "content": "What was?"},
            {"role": "assistant", "content": "The river."},
        ],
        "split": "held_out",
    },
    {"instruction": "Too long?", "output": "A very long answer. " * 40, "split": "held_out"},
]


@dataclass(frozen=True)
class Run:
    """Where the inputs of `assess` lie."""

    tokens: Path
    instructions: Path
    base: Path
    tuned: Path
    aligned: Path
    reward: Path

    def paths(self) -> tuple[Path, ...]:
        return (self.tokens, self.instructions, self.base, self.tuned, self.aligned, self.reward)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    root = tmp_path_factory.mktemp("run")
    made = Run(*(root / name for name in ("tokens", "instructions", "base", "tuned", "aligned", "reward")))
    write_tokens(made.tokens, TRAIN, VALIDATION)
    write_instructions(made.instructions, INSTRUCTIONS)
    vocabulary = ChatTokenizer(made.tokens).vocab_size
    base = tiny_model(vocabulary, seed=1)
    for seed, directory in ((1, made.base), (2, made.tuned), (3, made.aligned)):
        save_model(tiny_model(vocabulary, seed), directory)
    save_model(RewardModel.from_trunk(base.model, 4), made.reward)
    for directory in (made.base, made.tuned, made.aligned, made.reward):
        write_tokenizer(made.tokens, directory)
    return made


def tiny_model(vocabulary: int, seed: int) -> CausalLM:
    config = ModelConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5,
        rope_theta=10000.0,
        initializer_range=0.3,  # far from uniform predictions, so that an error in a loss would show
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    model = CausalLM(config)
    initialise(model, config, seed)
    return model.eval()


def write_tokens(directory: Path, train: list[str], validation: list[str]) -> None:
    directory.mkdir()
    tokenizer = Tokenizer(tokenizer_models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAIN, trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer_config(CONTEXT)))
    part = directory.parent / "part-00000.parquet"
    rows = [("train", text) for text in train] + [("validation", text) for text in validation]
    columns = {"id": [f"{number:032x}" for number in range(len(rows))], "copy": [0] * len(rows)}
    columns |= {"split": [split for split, _ in rows], "text": [text for _, text in rows]}
    pq.write_table(pa.table(columns | {name: [name] * len(rows) for name in GROUPS}), part)
    chat = ChatTokenizer(directory)
    layout = Layout(
        dtype="uint16", sequence_tokens=CONTEXT + 1, bos=chat.bos_id, eos=chat.eos_id, pad=chat.pad_id,
        slice_characters=SLICE_CHARACTERS, kinds=token_kinds(chat),
        bytes_V=token_bytes(directory),
    )  # fmt: skip
    written = encode_part(0, part, "documents/part-00000.parquet", chat, directory, layout)
    index = TokenIndex(
        dtype="uint16",
        vocab_size=chat.vocab_size,
        context=CONTEXT,
        special_tokens=SpecialTokens(bos=chat.bos_id, eos=chat.eos_id, pad=chat.pad_id),
        begins=True,
        ends=True,
        tokenizer=[],
        splits={split.split: [split.file] for split in written},
        snapshot="5" * 32,
    )
    write_index(directory, index)


def write_tokenizer(source: Path, directory: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (directory / name).write_bytes((source / name).read_bytes())


def write_instructions(directory: Path, rows: list[dict]) -> None:
    directory.mkdir()
    with gzip.open(directory / "rows.jsonl.gz", "wt", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row | {"source": "mill", "licence": "CC0-1.0"}) + "\n")


@pytest.fixture(scope="session")
def base_model(run: Run) -> CausalLM:
    from models.hub import load_model

    torch.set_num_threads(2)
    return load_model(run.base).eval()
