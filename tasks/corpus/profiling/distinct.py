"""How many different things there are, from the k smallest hashes: a sketch that merges in any order.

Bar-Yossef et al., Counting Distinct Elements in a Data Stream, 2002; the estimator (k − 1) / h₍k₎ and its
standard error are those of Beyer et al., On Synopses for Distinct-Value Estimation Under Multiset
Operations, 2007. A hash among the k smallest of the whole is among the k smallest of every part that has it,
so its occurrences are counted exactly: the sketch is a uniform sample of the distinct things, with their
frequencies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SPACE = 2.0**64


@dataclass(frozen=True)
class Distinct:
    """The smallest hashes that were seen, and how often each was."""

    size: int
    """k: how many are kept"""
    hashes_K: np.ndarray
    """uint64, ascending, without repeats"""
    counts_K: np.ndarray
    """int64"""

    @property
    def limit(self) -> np.uint64:
        """Hashes above it change nothing."""
        full = len(self.hashes_K) == self.size
        return self.hashes_K[-1] if full else np.uint64(2**64 - 1)

    def distinct(self) -> int:
        """How many different hashes were seen: exact below k, then an estimate."""
        if len(self.hashes_K) < self.size:
            return len(self.hashes_K)
        return round((self.size - 1) * _SPACE / (float(self.hashes_K[-1]) + 1))

    def drawn(self, total: int, draws: int) -> float | None:
        """How many different ones are expected among ``draws`` of the ``total``; None if there are fewer.

        Rarefaction (Hurlbert, The Nonconcept of Species Diversity, 1971), with draws that are independent.
        """
        if total < draws or not len(self.counts_K):
            return None
        frequencies, many = np.unique(self.counts_K, return_counts=True)
        unseen = [
            number * math.exp(frequency * math.log1p(-draws / total)) if total > draws else 0.0
            for frequency, number in zip(frequencies.tolist(), many.tolist(), strict=True)
        ]
        return self.distinct() * (1 - math.fsum(unseen) / len(self.counts_K))

    def single_share(self) -> float | None:
        """The share of the different ones that were seen once."""
        return float(np.mean(self.counts_K == 1)) if len(self.counts_K) else None

    def mean_count(self) -> float | None:
        """How often a different one was seen on average: exact below k, then the sample's mean."""
        return int(self.counts_K.sum()) / len(self.counts_K) if len(self.counts_K) else None


def nothing_seen(size: int) -> Distinct:
    """An empty sketch that will keep ``size`` hashes."""
    return Distinct(size, np.zeros(0, np.uint64), np.zeros(0, np.int64))


def seen(sketch: Distinct, hashes_N: np.ndarray) -> Distinct:
    """The sketch after these hashes (uint64, uniform, repeats and all) too."""
    near = hashes_N[hashes_N <= sketch.limit]
    if not len(near):
        return sketch
    new, counts = np.unique(near, return_counts=True)
    return merge_distinct([sketch, Distinct(sketch.size, new, counts.astype(np.int64))])


def merge_distinct(sketches: Sequence[Distinct]) -> Distinct:
    """The sketch of all that the given ones, of one size, have seen."""
    size = sketches[0].size
    hashes, place = np.unique(np.concatenate([one.hashes_K for one in sketches]), return_inverse=True)
    counts = np.zeros(len(hashes), np.int64)
    np.add.at(counts, place, np.concatenate([one.counts_K for one in sketches]))
    return Distinct(size, hashes[:size].copy(), counts[:size].copy())


def standard_error(size: int) -> float:
    """The relative standard error of an estimate beyond ``size``: 1 / √(k − 2)."""
    return 1 / math.sqrt(size - 2)
