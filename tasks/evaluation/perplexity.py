"""Perplexity of running text: documents cut into windows so that every token is scored exactly once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel, ConfigDict

from tasks.evaluation.estimates import NO_DATA, Estimate, NoData, ratio, significant


class Perplexity(BaseModel):
    """Loss in nats per scored token, and what follows from it.

    ``bits_per_byte`` spreads the same loss over the bytes of the text, so that models of different
    tokenizers compare; None where the bytes of a token are not known.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    loss: Estimate
    perplexity: float
    bits_per_byte: float | None = None


@dataclass(frozen=True)
class Window:
    """Consecutive tokens of one document; all but the first are scored, in this window and in no other."""

    tokens: np.ndarray

    @property
    def answer(self) -> np.ndarray:
        """True for each scored token."""
        scored_T = np.ones(len(self.tokens), dtype=bool)
        scored_T[0] = False
        return scored_T


def summarise(losses_N: np.ndarray, counts_N: np.ndarray, text_bytes: int | None) -> Perplexity | NoData:
    """Perplexity over N independent sequences: exp of the total loss over the total of scored tokens."""
    loss = ratio(losses_N, counts_N)
    if loss == NO_DATA:
        return NO_DATA
    total = float(np.sum(losses_N, dtype=np.float64))
    return Perplexity(
        loss=loss,
        perplexity=significant(math.exp(total / float(np.sum(counts_N)))),
        bits_per_byte=significant(total / math.log(2) / text_bytes) if text_bytes else None,
    )


def window_spans(starts_D: np.ndarray, ends_D: np.ndarray, context: int) -> Iterator[tuple[int, int]]:
    """Positions [start, end) of windows that score every token of each document but its first exactly once.

    A window is ``context`` inputs wide and the next one begins ``context`` tokens later (the stride equals
    the context), so it holds ``context + 1`` tokens, of which the first is shared and only conditioned on.
    """
    for start, end in zip(starts_D.tolist(), ends_D.tolist(), strict=True):
        for first in range(start, end - 1, context):
            yield first, min(first + context + 1, end)


def choose_windows(spans: list[tuple[int, int]], limit: int | None, seed: int) -> list[tuple[int, int]]:
    """As many windows (start, end), drawn at random, as it takes to score ``limit`` tokens.

    Whole windows only, each at most once, in the order of the text; all of them where ``limit`` is None or is
    not reached.
    """
    if limit is None:
        return spans
    chosen, scored = [], 0
    for index in np.random.default_rng(seed).permutation(len(spans)).tolist():
        if scored >= limit:
            break
        chosen.append(spans[index])
        scored += spans[index][1] - spans[index][0] - 1
    return sorted(chosen)
