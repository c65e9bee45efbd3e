"""Pairs of documents that share a key: each task takes the buckets of a range of keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.deduplication.arrays import places_of_runs, run_starts, write_array
from tasks.corpus.deduplication.order import preference
from tasks.corpus.deduplication.segments import CONTENT, Segments

KEYS_IN_A_TASK = 4_000_000
"""What a task holds and sorts (about 150 MB)."""

WORTH_A_TASK = 100_000
"""Keys for which a further core is called in."""

PAIRS = "pairs"
"""Files of candidates to be compared: int64 of shape (P, 2), ascending, the smaller number first."""

EXACT = "exact"
"""Files of documents of the same content: int64 of shape (E, 2), each with the best of them."""


@dataclass(frozen=True)
class KeyRange:
    """The keys from ``first`` to ``last``, both included."""

    number: int
    first: int
    last: int


def key_ranges(keys: int, cores: int) -> list[KeyRange]:
    """Ranges that have about as many of so many keys each; keys are hashes."""
    count = max(1, min(cores, keys // WORTH_A_TASK), -(-keys // KEYS_IN_A_TASK))
    bounds = [2**64 * number // count for number in range(count + 1)]
    return [KeyRange(number, bounds[number], bounds[number + 1] - 1) for number in range(count)]


@dataclass(frozen=True)
class BucketPairing:
    """Finds the pairs of a range of keys.

    Of a bucket of up to ``all_pairs_up_to`` all pairs are candidates; of a larger one each document with the
    best of the bucket: a bucket of n costs n - 1 pairs, not n². Two documents of an earlier index, those
    before number ``earlier``, are no pair. Of documents of the same content the best stands for all.
    """

    segments: Segments
    earlier: int
    all_pairs_up_to: int
    folder: Path

    def pair(self, keys: KeyRange) -> int:
        """Write the files `PAIRS` and `EXACT` of a range; returns the number of pairs in it."""
        segments = Segments(self.segments.segments)
        keys_M, numbers_M = self._shared(segments, keys)
        different, places_M = np.unique(numbers_M, return_inverse=True)
        documents_U = segments.documents(different)
        preference_M = preference(documents_U, different < self.earlier)[places_M]
        contents_M2 = documents_U["content"][places_M]
        order = np.lexsort((preference_M, contents_M2[:, 1], contents_M2[:, 0], keys_M))
        best_M = run_starts(keys_M[order], contents_M2[order, 0], contents_M2[order, 1])
        whole_M = (keys_M[order] & CONTENT).astype(bool)
        best_of_M = numbers_M[order][np.maximum.accumulate(np.where(best_M, np.arange(len(order)), 0))]
        twins = np.stack([numbers_M[order], best_of_M], axis=1)[whole_M & ~best_M]
        write_array(self.folder / f"{EXACT}-{keys.number:06d}.npy", twins)
        left = order[~whole_M & best_M]
        left = left[np.lexsort((preference_M[left], keys_M[left]))]
        pairs_P2 = bucket_pairs(keys_M[left], numbers_M[left], self.earlier, self.all_pairs_up_to)
        write_array(self.folder / f"{PAIRS}-{keys.number:06d}.npy", pairs_P2)
        return len(pairs_P2)

    def _shared(self, segments: Segments, keys: KeyRange) -> tuple[np.ndarray, np.ndarray]:
        """Every key of the range that a new document shares with another, with each of its documents."""
        new, old = [], []
        for number, segment in enumerate(segments.segments):
            (old if segment.first < self.earlier else new).append(number)
        found = [segments.keys_between(number, keys.first, keys.last) for number in new]
        keys_N, numbers_N = (np.concatenate(columns) for columns in zip(*found, strict=True))
        order = np.argsort(keys_N, kind="stable")
        keys_N, numbers_N = keys_N[order], numbers_N[order]
        if not old:
            return _shared_only(keys_N, numbers_N)
        asked = keys_N[run_starts(keys_N)]
        held = [(keys_N, numbers_N)]
        for number in old:
            theirs, whose = segments.keys_between(number, keys.first, keys.last)
            starts = np.searchsorted(theirs, asked, side="left")
            counts = np.searchsorted(theirs, asked, side="right") - starts
            places = places_of_runs(starts, counts)
            held.append((theirs[places], whose[places]))
        keys_M, numbers_M = (np.concatenate(columns) for columns in zip(*held, strict=True))
        order = np.argsort(keys_M, kind="stable")
        return _shared_only(keys_M[order], numbers_M[order])


def bucket_pairs(keys_M: np.ndarray, numbers_M: np.ndarray, earlier: int, all_pairs_up_to: int) -> np.ndarray:
    """The different pairs of documents that share a key, int64 of shape (P, 2): see `BucketPairing`.

    Rows are in the order of their keys, those of one key in the order of preference.
    """
    starts_B = np.flatnonzero(run_starts(keys_M))
    sizes_B = np.diff(np.append(starts_B, len(keys_M)))
    pairs_P2 = _bucket_pairs(starts_B, sizes_B, numbers_M, earlier, all_pairs_up_to)
    order = np.lexsort((pairs_P2[:, 1], pairs_P2[:, 0]))
    return pairs_P2[order][run_starts(pairs_P2[order, 0], pairs_P2[order, 1])]


def _shared_only(keys_N: np.ndarray, numbers_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of ascending keys those of several documents: most are of one alone."""
    starts_N = run_starts(keys_N)
    shared_N = ~(starts_N & np.append(starts_N[1:], True)) if len(keys_N) else starts_N
    return keys_N[shared_N], numbers_N[shared_N]


@compiled()
def _bucket_pairs(starts_B, sizes_B, numbers_M, earlier, all_pairs_up_to):
    pairs_P2 = np.empty((0, 2), np.int64)
    for count_only in (True, False):
        pairs = 0
        for b in range(len(starts_B)):
            start, stop = starts_B[b], starts_B[b] + sizes_B[b]
            centres = 1 if sizes_B[b] > all_pairs_up_to else sizes_B[b]
            for i in range(start, start + centres):
                for j in range(i + 1, stop):
                    one, other = numbers_M[i], numbers_M[j]
                    if one < earlier and other < earlier:
                        continue
                    if not count_only:
                        pairs_P2[pairs, 0] = min(one, other)
                        pairs_P2[pairs, 1] = max(one, other)
                    pairs += 1
        if count_only:
            pairs_P2 = np.empty((pairs, 2), np.int64)
    return pairs_P2
