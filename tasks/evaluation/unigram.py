"""The baseline that knows how often each token occurs and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tasks.evaluation.losses import Scored


def count_tokens(targets: Iterable[np.ndarray], vocab_size: int) -> np.ndarray:
    """How often each token is a target in the training text, counts_V.

    A token that is never predicted, as the one that begins a document, is not counted: baseline and model
    share out probability over the same events.
    """
    counts_V = np.zeros(vocab_size, dtype=np.int64)
    for chunk in targets:
        counts_V += np.bincount(chunk, minlength=vocab_size)
    return counts_V


def unigram_losses(counts_V: np.ndarray, sequences: Sequence[Scored]) -> np.ndarray:
    """−Σ log p of each sequence's scored tokens, in nats; p(v) = (counts[v] + 1) / (Σ counts + V)."""
    costs_V = np.log(counts_V.sum() + len(counts_V)) - np.log(counts_V + 1.0)
    return np.array(
        [costs_V[np.asarray(s.tokens)[np.asarray(s.answer, dtype=bool)]].sum() for s in sequences],
        dtype=np.float64,
    )
