"""How alike two documents are by their sets of shingles, exactly."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.deduplication.shingles import Shingles
from tasks.corpus.scoring.hashing import capacity_for, hash_table, seen_before, slot_of

Measure = Literal["jaccard", "containment"]
"""|A ∩ B| / |A ∪ B|, or |A ∩ B| / min(|A|, |B|) (Broder, 1997)."""


def similarities(left: Shingles, right: Shingles, measure: Measure) -> np.ndarray:
    """The similarity of the sets of every pair, float64 of shape (D,).

    A document without shingles is like no other. Shingles are equal if their hashes of 64 bits are: by chance
    in fewer than one of 10^12 pairs of documents of a thousand words.
    """
    return _similarities(
        left.hashes_S, left.offsets_D1, right.hashes_S, right.offsets_D1, measure == "containment"
    )


@compiled()
def _similarities(left_S, left_D1, right_S, right_D1, containment):
    pairs = len(left_D1) - 1
    values_D = np.zeros(pairs, np.float64)
    longest = 1
    for d in range(pairs):
        longest = max(longest, left_D1[d + 1] - left_D1[d])
        longest = max(longest, right_D1[d + 1] - right_D1[d])
    ours, theirs = hash_table(longest), hash_table(longest)
    for d in range(pairs):
        one = _distinct(left_S, left_D1[d], left_D1[d + 1], ours, d + 1)
        other = common = 0
        mask = capacity_for(left_D1[d + 1] - left_D1[d]) - 1
        other_mask = capacity_for(right_D1[d + 1] - right_D1[d]) - 1
        for i in range(right_D1[d], right_D1[d + 1]):
            if not seen_before(right_S[i], theirs, d + 1, other_mask):
                other += 1
                common += ours.stamps[slot_of(right_S[i], ours, d + 1, mask)] == d + 1
        whole = min(one, other) if containment else one + other - common
        if whole:
            values_D[d] = common / whole
    return values_D


@compiled()
def _distinct(hashes_S, begin, end, table, stamp):
    """Put a document's shingles into the table; returns how many different ones there are."""
    mask = capacity_for(end - begin) - 1
    count = 0
    for i in range(begin, end):
        count += not seen_before(hashes_S[i], table, stamp, mask)
    return count
