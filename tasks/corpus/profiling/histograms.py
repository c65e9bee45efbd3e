"""Histograms with fixed edges, so that those of parts add up to that of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LENGTH_EDGES: tuple[int, ...] = (0, *(round(10 ** (i / 4)) for i in range(33)))
"""Characters: empty, then four bins a decade from 1 to 10⁸, the last one open."""

_SHARES = tuple(i / 200 for i in range(201))
_COUNTS = (0.0, *(float(f"{10 ** (i / 20):.6g}") for i in range(161)))

SIGNAL_EDGES: dict[str, tuple[float, ...]] = {
    "language_score": _SHARES,
    "words": _COUNTS,
    "perplexity": _COUNTS,
    "toxicity": _SHARES,
    "mean_word_length": tuple(i / 10 for i in range(301)),
    "alphabetic_word_share": _SHARES,
    "stop_words": tuple(float(i) for i in range(17)),
    "duplicate_line_share": _SHARES,
    "top_2_gram_character_share": _SHARES,
    "duplicate_5_gram_character_share": _SHARES,
    "terminal_line_share": _SHARES,
    "short_line_share": _SHARES,
    "contamination": _SHARES,
}
"""The signals of which quantiles are taken: steps of 0.005 for a share, of 12 % for a count."""


def binned(values_N: np.ndarray, edges: Sequence[float]) -> np.ndarray:
    """How many of the values (NaN is none) lie in each bin: int64, one for each edge, at which it begins.

    What is below the first edge is counted in the first bin.
    """
    values = values_N[~np.isnan(values_N)]
    bins = np.maximum(np.searchsorted(np.asarray(edges, np.float64), values, side="right") - 1, 0)
    return np.bincount(bins, minlength=len(edges)).astype(np.int64)


def quantile(counts: np.ndarray, edges: Sequence[float], percent: int) -> float:
    """The edge at which the bin begins that holds the quantile; there must be a value.

    The quantile is the smallest value that at least ``percent`` of a hundred values do not exceed.
    """
    rank = max(1, -(-percent * int(counts.sum()) // 100))
    return float(edges[int(np.searchsorted(np.cumsum(counts), rank))])
