"""How alike two documents are by their sets of shingles, exactly."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.deduplication.segments import Features
from tasks.corpus.scoring.hashing import capacity_for, hash_table, seen_before, slot_of

Measure = Literal["jaccard", "containment"]
"""|A ∩ B| / |A ∪ B|, or |A ∩ B| / min(|A|, |B|) (Broder, 1997)."""


def similarities(
    documents: Features, left_P: np.ndarray, right_P: np.ndarray, measure: Measure
) -> np.ndarray:
    """The similarity of the sets of every pair of places among the documents, float64 of shape (P,).

    A document without shingles is like no other. Shingles are equal if their hashes of 64 bits are: by chance
    in fewer than one of 10^12 pairs of documents of a thousand words.
    """
    sets_S, bounds_D1 = _distinct(documents.values, documents.firsts_D, documents.sizes_D)
    return _similarities(sets_S, bounds_D1, left_P, right_P, measure == "containment")


@compiled()
def _distinct(hashes_S, firsts_D, sizes_D):
    """Every document's different shingles, back to back: a document is in many pairs."""
    documents = len(firsts_D)
    longest = total = 0
    for d in range(documents):
        longest = max(longest, sizes_D[d])
        total += sizes_D[d]
    table = hash_table(longest)
    sets_S = np.empty(total, np.uint64)
    bounds_D1 = np.zeros(documents + 1, np.int64)
    found = 0
    for d in range(documents):
        mask = capacity_for(sizes_D[d]) - 1
        for i in range(firsts_D[d], firsts_D[d] + sizes_D[d]):
            if not seen_before(hashes_S[i], table, d + 1, mask):
                sets_S[found] = hashes_S[i]
                found += 1
        bounds_D1[d + 1] = found
    return sets_S, bounds_D1


@compiled()
def _similarities(sets_S, bounds_D1, left_P, right_P, containment):
    values_P = np.zeros(len(left_P), np.float64)
    longest = 0
    for d in range(len(bounds_D1) - 1):
        longest = max(longest, bounds_D1[d + 1] - bounds_D1[d])
    table = hash_table(longest)
    mask = stamp = 0
    for p in range(len(left_P)):
        begin, end = bounds_D1[left_P[p]], bounds_D1[left_P[p] + 1]
        # Pairs of one document come together: its table serves all of them.
        if p == 0 or left_P[p] != left_P[p - 1]:
            stamp += 1
            mask = capacity_for(end - begin) - 1
            for i in range(begin, end):
                seen_before(sets_S[i], table, stamp, mask)
        first, last = bounds_D1[right_P[p]], bounds_D1[right_P[p] + 1]
        common = 0
        for i in range(first, last):
            common += table.stamps[slot_of(sets_S[i], table, stamp, mask)] == stamp
        one, other = end - begin, last - first
        whole = min(one, other) if containment else one + other - common
        if whole:
            values_P[p] = common / whole
    return values_P
