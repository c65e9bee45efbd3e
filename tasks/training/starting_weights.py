"""The weights that pretraining begins with: new ones, or those of a model directory."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.directory_digest import directory_digest
from tasks.stage import StageError

if TYPE_CHECKING:
    from torch import nn

    from models.transformer import CausalLM
    from tasks.corpus.encoding.index import SpecialTokens

log = logging.getLogger("gristmill")

TOKENIZER = "tokenizer.json"


def begin_from(
    directory: Path, digest: str | None, tokens: Path, vocabulary: int, context: int, special: SpecialTokens
) -> CausalLM:
    """The language model of a directory, with rows for all ``vocabulary`` ids of the tokenizer of ``tokens``.

    Raises:
        StageError: if the directory is not the one of ``digest``, holds no such model, has other tokens, or
            takes fewer than ``context``.
    """
    from models.resize import with_vocabulary
    from tasks.training.model_directory import read_model

    _check_digest(directory, digest)
    model = read_model(directory)
    _check_tokens(directory, tokens)
    config = model.config
    if context > config.max_position_embeddings:
        raise StageError(
            f"pretrain.context is {context}, but {directory} takes {config.max_position_embeddings} tokens "
            "at most (max_position_embeddings)"
        )
    if added := max(0, vocabulary - config.vocab_size):
        log.info(
            "%s: rows for %d more tokens, each the mean of its own %d", directory, added, config.vocab_size
        )
    ids = {f"{name}_token_id": getattr(special, name) for name in ("bos", "eos", "pad")}
    return with_vocabulary(model, config.model_copy(update={"vocab_size": config.vocab_size + added} | ids))


def train_only(model: nn.Module, patterns: Iterable[str]) -> None:
    """Leave all weights as they are but those whose name matches one of ``patterns`` (``*`` is any text).

    Raises:
        StageError: for a pattern that matches no weight.
    """
    patterns = list(patterns)
    named = dict(model.named_parameters())
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in named):
            raise StageError(
                f"pretrain.train_only: no weight is named {pattern}; the names are {_shown(list(named))}"
            )
    if patterns:
        for name, parameter in named.items():
            parameter.requires_grad_(any(fnmatchcase(name, pattern) for pattern in patterns))


def _check_digest(directory: Path, expected: str | None) -> None:
    if not directory.is_dir():
        raise StageError(f"pretrain.init_from: {directory} is no directory")
    names = ["config.json", TOKENIZER, *sorted(path.name for path in directory.glob("*.safetensors*"))]
    found = directory_digest(directory, names)
    if found != expected:
        said = "is not set" if expected is None else f"is {expected}"
        raise StageError(
            f"pretrain.init_from_digest {said}, but {directory} has the digest {found}. Is that the model "
            f"you mean? Then write it into params.yaml: DVC knows the model by it"
        )


def _check_tokens(directory: Path, tokens: Path) -> None:
    """An id must mean to the model what it means in the token files."""
    from tokenizers import Tokenizer

    if not (directory / TOKENIZER).is_file():
        raise StageError(f"{directory} has no {TOKENIZER}, so what its ids mean cannot be checked")
    theirs = Tokenizer.from_file(str(directory / TOKENIZER)).get_vocab(with_added_tokens=True)
    ours = Tokenizer.from_file(str(tokens / TOKENIZER)).get_vocab(with_added_tokens=True)
    different = [token for token, number in theirs.items() if ours.get(token) != number]
    if different:
        first = min(different, key=lambda token: theirs[token])
        raise StageError(
            f"{tokens / TOKENIZER} has other tokens than {directory / TOKENIZER}: {len(different)} differ, "
            f"the first is {first!r}, {theirs[first]} in the model and {ours.get(first, 'none')} in the "
            f"tokens. Encode with its tokenizer: encode.tokenizer: {directory}"
        )


def _shown(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" … {names[-1]}" if len(names) > 4 else "")
