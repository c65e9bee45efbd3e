"""Candidates compared: each task takes those of a range of documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.corpus.deduplication.arrays import bounded_runs, mapped_array, sorted_slice, write_array
from tasks.corpus.deduplication.components import contract
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.segments import Features, Segments, checksums
from tasks.stage import StageError

FEATURES_AT_ONCE = 2**22
"""Of the pairs that are compared at once: a hundred pairs of books are as much as ten thousand of pages."""

EDGES = "edges"
"""Files of verified pairs, contracted: int64 of shape (E, 2), each document with the smallest of its star."""


@dataclass(frozen=True)
class Compared:
    """How many pairs a task compared, and how many were alike."""

    candidates: int
    verified: int


@dataclass(frozen=True)
class Verification:
    """Compares the candidates whose first document is in a range; ``pairs`` are the files of all."""

    segments: Segments
    earlier: int
    method: Method
    pairs: list[Path]
    folder: Path

    def verify(self, task: tuple[int, tuple[int, int]]) -> Compared:
        """Write the file `EDGES` of a numbered range."""
        number, (first, last) = task
        found = [np.empty((0, 2), np.int64)]
        for path in self.pairs:
            held = mapped_array(path)
            found.append(held[sorted_slice(held[:, 0], first, last)])
        pairs_P2 = np.unique(np.concatenate(found), axis=0) if len(found) > 2 else np.concatenate(found)
        segments = Segments(self.segments.segments)
        alike_P = similarity_of_pairs(segments, self.earlier, self.method, pairs_P2) >= self.method.threshold
        edges_E2 = pairs_P2[alike_P]
        nodes_N, roots_N = contract([(edges_E2[:, 0], edges_E2[:, 1])])
        stars_E2 = np.stack([nodes_N, roots_N], axis=1)[nodes_N != roots_N]
        write_array(self.folder / f"{EDGES}-{number:06d}.npy", stars_E2)
        return Compared(len(pairs_P2), int(alike_P.sum()))


def similarity_of_pairs(segments: Segments, earlier: int, method: Method, pairs_P2: np.ndarray) -> np.ndarray:
    """The similarity of the two documents of every pair, float64 of shape (P,).

    Raises:
        StageError: the features of a document of the earlier index are not what they were.
    """
    sizes_P = segments.documents(pairs_P2.reshape(-1))["size"].reshape(-1, 2).sum(axis=1)
    held = [np.empty(0)]
    for start, stop in bounded_runs(sizes_P, FEATURES_AT_ONCE):
        numbers, places = np.unique(pairs_P2[start:stop], return_inverse=True)
        places_P2 = places.reshape(-1, 2)
        documents = segments.features(numbers)
        _check(segments, earlier, numbers, documents)
        left_P, right_P = (np.ascontiguousarray(places_P2[:, side]) for side in (0, 1))
        held.append(method.similarities(documents, left_P, right_P))
    return np.concatenate(held)


def _check(segments: Segments, earlier: int, numbers: np.ndarray, documents: Features) -> None:
    old = int(np.searchsorted(numbers, earlier))
    features = Features(documents.values, documents.firsts_D[:old], documents.sizes_D[:old])
    expected = segments.documents(numbers[:old])["features"]
    damaged = numbers[:old][checksums(features) != expected]
    if len(damaged):
        segment = int(segments.segment_of(damaged)[0])
        raise StageError(
            f"{segments.segments[segment].path('features')} is damaged: the features of its document "
            f"{damaged[0] - segments.bounds[segment]} are not those that were written. Restore the index "
            "(`dvc checkout`), or make it anew from all documents"
        )
