"""How alike two documents are by their sets of shingles, exactly."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.deduplication.segments import Features
from tasks.corpus.scoring.hashing import capacity_for, hash_table, seen_before, slot_of

Measure = Literal["jaccard", "containment"]
"""|A ∩ B| / |A ∪ B|, or |A ∩ B| / min(|A|, |B|) (Broder, 1997)."""


def similarities(left: Features, right: Features, measure: Measure) -> np.ndarray:
    """The similarity of the sets of every pair, float64 of shape (P,).

    A document without shingles is like no other. Shingles are equal if their hashes of 64 bits are: by chance
    in fewer than one of 10^12 pairs of documents of a thousand words.
    """
    return _similarities(
        left.values, left.firsts_D, left.sizes_D, right.values, right.firsts_D, right.sizes_D,
        measure == "containment",
    )  # fmt: skip


@compiled()
def _similarities(left_S, left_firsts_P, left_sizes_P, right_S, right_firsts_P, right_sizes_P, containment):
    pairs = len(left_firsts_P)
    values_P = np.zeros(pairs, np.float64)
    longest = 1
    for p in range(pairs):
        longest = max(longest, left_sizes_P[p], right_sizes_P[p])
    ours, theirs = hash_table(longest), hash_table(longest)
    one = stamp = 0
    for p in range(pairs):
        first, size = left_firsts_P[p], left_sizes_P[p]
        mask = capacity_for(size) - 1
        # Pairs of one document often come together: its table serves all of them.
        if p == 0 or first != left_firsts_P[p - 1] or size != left_sizes_P[p - 1]:
            stamp += 1
            one = 0
            for i in range(first, first + size):
                one += not seen_before(left_S[i], ours, stamp, mask)
        other = common = 0
        other_mask = capacity_for(right_sizes_P[p]) - 1
        for i in range(right_firsts_P[p], right_firsts_P[p] + right_sizes_P[p]):
            if not seen_before(right_S[i], theirs, p + 1, other_mask):
                other += 1
                common += ours.stamps[slot_of(right_S[i], ours, stamp, mask)] == stamp
        whole = min(one, other) if containment else one + other - common
        if whole:
            values_P[p] = common / whole
    return values_P
