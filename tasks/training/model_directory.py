"""Model directories in the Hugging Face layout: weights, tokenizer and history side by side."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from models.config import ModelConfig
from models.heads import RewardModel
from models.hub import load_model, load_reward_model, save_model
from models.transformer import CausalLM
from tasks.stage import StageError
from tasks.training.chat import TOKENIZER_FILES, ChatTokenizer

HISTORY = "history.jsonl"

Loaded = TypeVar("Loaded")


def open_model(directory: Path) -> tuple[CausalLM, ChatTokenizer]:
    """The language model of a directory, in fp32, and its tokenizer.

    Raises:
        StageError: if a file is missing or broken, or if the tokenizer does not belong to the model.
    """
    model, chat = _or_stage_error(load_model, directory), _or_stage_error(ChatTokenizer, directory)
    _check_fit(directory, model.config, chat)
    return model, chat


def read_model(directory: Path) -> CausalLM:
    """The language model of a directory, in fp32, whatever its tokenizer.

    Raises:
        StageError: if a file is missing or broken.
    """
    return _or_stage_error(load_model, directory)


def open_reward_model(directory: Path) -> tuple[RewardModel, ChatTokenizer]:
    """The reward model of a directory, in fp32, and its tokenizer.

    Raises:
        StageError: as `open_model` does.
    """
    model, chat = _or_stage_error(load_reward_model, directory), _or_stage_error(ChatTokenizer, directory)
    _check_fit(directory, model.config, chat)
    return model, chat


def write_model(
    model: CausalLM | RewardModel,
    directory: Path,
    *,
    tokenizer_from: Path,
    history: Iterable[Mapping[str, Any]],
) -> None:
    """Write the model with the tokenizer of the directory it came from and the history of its training."""
    save_model(model, directory)
    for name in TOKENIZER_FILES:
        shutil.copyfile(tokenizer_from / name, directory / name)
    lines = (json.dumps(entry, sort_keys=True) + "\n" for entry in history)
    (directory / HISTORY).write_text("".join(lines), "utf-8")


def _or_stage_error(load: Callable[[Path], Loaded], directory: Path) -> Loaded:
    try:
        return load(directory)
    except (FileNotFoundError, ValueError) as error:
        raise StageError(str(error)) from error


def _check_fit(directory: Path, config: ModelConfig, chat: ChatTokenizer) -> None:
    if chat.vocab_size > config.vocab_size:
        raise StageError(
            f"{directory}: the tokenizer has {chat.vocab_size} tokens, the model's embedding only "
            f"{config.vocab_size}; they do not belong together"
        )
    for name, found in (("bos", chat.bos_id), ("eos", chat.eos_id), ("pad", chat.pad_id)):
        expected = getattr(config, f"{name}_token_id")
        if expected != found:
            raise StageError(
                f"{directory}: config.json says {name}_token_id {expected}, tokenizer.json has it at "
                f"{found}; they do not belong together"
            )
