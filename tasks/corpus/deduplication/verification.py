"""Candidates compared: each task takes those of a range of documents."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.corpus.deduplication.arrays import mapped_array, sorted_slice, write_array
from tasks.corpus.deduplication.components import contract
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.segments import Features, Segments, checksums, grouped
from tasks.stage import StageError

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
    values_P = np.zeros(len(pairs_P2), np.float64)
    both_P2 = segments.segment_of(pairs_P2.reshape(-1)).reshape(-1, 2)
    for _, places in grouped(both_P2[:, 0] * len(segments.segments) + both_P2[:, 1]):
        left, right = (
            _features(segments, int(both_P2[places[0], side]), pairs_P2[places, side], earlier)
            for side in (0, 1)
        )
        values_P[places] = method.similarities(left, right)
    return values_P


def _features(segments: Segments, segment: int, numbers_P: np.ndarray, earlier: int) -> Features:
    held = segments.array(segment, "documents")
    rows_P = numbers_P - segments.bounds[segment]
    values = segments.array(segment, "features")
    found = Features(values, held["first"][rows_P], held["size"][rows_P])
    if segments.bounds[segment] < earlier:
        rows = np.unique(rows_P)
        once = Features(values, held["first"][rows], held["size"][rows])
        damaged = rows[checksums(once) != held["features"][rows]]
        if len(damaged):
            raise StageError(
                f"{segments.segments[segment].path('features')} is damaged: the features of its document "
                f"{damaged[0]} are not those that were written. Restore the index (`dvc checkout`), or make "
                "it anew from all documents"
            )
    return found
