"""Perplexity under a language model of a directory in the Hugging Face layout, ours or another Llama."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.stage import StageError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from models.transformer import CausalLM

CHARACTERS_PER_TOKEN = 16
"""Only so many characters of a text are read for each token that is scored."""


@dataclass(frozen=True)
class LanguageModel:
    """A model, its tokenizer, and how many tokens of a document it scores at most."""

    model: CausalLM
    tokenizer: Tokenizer
    tokens: int


@dataclass(frozen=True)
class _Sequence:
    tokens: list[int]
    answer: np.ndarray


def load_language_model(directory: Path, *, tokens: int = 512) -> LanguageModel:
    """The model of a directory, for the first ``tokens`` tokens of documents, on one thread of this process.

    Raises:
        StageError: if a file is missing or broken, if tokenizer and model do not belong together, or if the
            model is narrower than ``tokens``.
    """
    import torch
    from tokenizers import Tokenizer

    from models.hub import load_model

    torch.set_num_threads(1)  # each worker scores documents of its own
    try:
        model = load_model(directory)
    except (FileNotFoundError, ValueError) as error:
        raise StageError(str(error)) from error
    path = directory / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for whatever is wrong with the file
        raise StageError(f"{path}: no tokenizer ({error})") from None
    tokenizer.encode_special_tokens = True  # "<|end|>" in a document is text
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if tokenizer.get_vocab_size() > model.config.vocab_size:
        raise StageError(
            f"{directory}: the tokenizer has {tokenizer.get_vocab_size()} tokens, the model's embedding only "
            f"{model.config.vocab_size}; they do not belong together"
        )
    if tokens > model.config.max_position_embeddings:
        raise StageError(
            f"{directory}: the model reads {model.config.max_position_embeddings} tokens, fewer than the "
            f"{tokens} that are to be scored"
        )
    return LanguageModel(model.eval(), tokenizer, tokens)


def score(language_model: LanguageModel, texts: Sequence[str | None], *, batch_size: int = 16) -> np.ndarray:
    """The perplexity of the first tokens of each text, per token: perplexities_D.

    After the token that begins a text where the model has one, which is not scored; else the first token is
    not. NaN for a text without a scored token.
    """
    from tasks.evaluation.losses import scored_counts, sequence_losses

    begin = language_model.model.config.bos_token_id
    prefix = [] if begin is None else [begin]
    limit = language_model.tokens
    read = [(text or "")[: limit * CHARACTERS_PER_TOKEN] for text in texts]
    sequences = []
    for text in read:
        ids = language_model.tokenizer.encode(text, add_special_tokens=False).ids
        tokens = (prefix + ids)[:limit]
        scored_T = np.arange(len(tokens)) > 0
        sequences.append(_Sequence(tokens, scored_T))
    counts_D = scored_counts(sequences)
    perplexities_D = np.full(len(sequences), np.nan)
    chosen = np.flatnonzero(counts_D > 0)
    losses = sequence_losses(
        language_model.model, [sequences[index] for index in chosen.tolist()], batch_size=batch_size
    )
    perplexities_D[chosen] = np.exp(losses / counts_D[chosen])
    return perplexities_D
