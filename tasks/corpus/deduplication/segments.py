"""What is known of documents without their text: a segment of files for each row group.

Documents have numbers, 0, 1, …: those of an earlier index first, then those of the layer in their order. A
document's features (its shingles, say) are many times an id; moved through a shuffle they took most of the
time of deduplication. Here tasks exchange numbers, and look up in files that they map into memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.deduplication.arrays import mapped_array, run_starts, sorted_slice
from tasks.corpus.scoring.hashing import hash_of

DOCUMENT = np.dtype(
    [
        ("id", np.uint64, 2),
        ("content", np.uint64, 2),
        ("source", np.uint64),
        ("first", np.int64),
        ("size", np.int64),
        ("features", np.uint64),
        ("length", np.int64),
    ]
)
"""A document: id and content hash (see ids.py), the hash of its source's name, where its features begin and
how many there are, their checksum, and its length in characters."""

FILES = ("documents", "features", "keys", "rows")
"""``keys`` are the documents' bucket keys, ascending, and ``rows`` the documents that they are of, counted
from the segment's first."""

CONTENT = np.uint64(1)
"""The lowest bit of a key that stands for the content as a whole, and not for a part of the features."""


@dataclass(frozen=True)
class Segment:
    """Where the files of some documents lie.

    Attributes:
        folder: in which folder.
        name: how the files' names begin.
        first: the number of the first document.
        documents: how many there are.
    """

    folder: str
    name: str
    first: int
    documents: int

    def path(self, what: str) -> Path:
        """One of `FILES`."""
        return Path(self.folder) / f"{self.name}.{what}.npy"


@dataclass(frozen=True)
class Features:
    """The features of D documents: those of d are ``values[firsts_D[d] : firsts_D[d] + sizes_D[d]]``."""

    values: np.ndarray
    firsts_D: np.ndarray
    sizes_D: np.ndarray

    @classmethod
    def back_to_back(cls, values: np.ndarray, offsets_D1: np.ndarray) -> Features:
        """Those from one offset to the next."""
        return cls(values, offsets_D1[:-1], np.diff(offsets_D1))


class Segments:
    """The segments of all documents, mapped when they are first needed.

    One is made for each task: a worker outlives the stage, and another may write to the same folder.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = list(segments)
        self.bounds = np.array([0, *(segment.first + segment.documents for segment in self.segments)])
        self._held: dict[tuple[int, str], np.ndarray] = {}

    def array(self, segment: int, what: str) -> np.ndarray:
        """One of the `FILES` of a segment."""
        if (segment, what) not in self._held:
            self._held[segment, what] = mapped_array(self.segments[segment].path(what))
        return self._held[segment, what]

    def segment_of(self, numbers_N: np.ndarray) -> np.ndarray:
        """The segment in which each document is."""
        return np.searchsorted(self.bounds, numbers_N, side="right") - 1

    def documents(self, numbers_N: np.ndarray) -> np.ndarray:
        """What is known of these documents, of dtype `DOCUMENT`."""
        found_N = np.empty(len(numbers_N), DOCUMENT)
        for segment, places in grouped(self.segment_of(numbers_N)):
            found_N[places] = self.array(segment, "documents")[numbers_N[places] - self.bounds[segment]]
        return found_N

    def features(self, numbers_N: np.ndarray) -> Features:
        """The features of these documents, copied one behind the other."""
        documents_N = self.documents(numbers_N)
        offsets_N1 = np.concatenate([[0], np.cumsum(documents_N["size"])])
        held: np.ndarray | None = None
        for segment, places in grouped(self.segment_of(numbers_N)):
            values = self.array(segment, "features")
            if held is None:
                held = np.empty((int(offsets_N1[-1]), *values.shape[1:]), values.dtype)
            width = _words_of(values)
            _copy(
                values.view(np.uint64).reshape(-1), documents_N["first"][places] * width,
                documents_N["size"][places] * width, held.view(np.uint64).reshape(-1),
                offsets_N1[places] * width,
            )  # fmt: skip
        values = np.empty(0, np.uint64) if held is None else held
        return Features.back_to_back(values, offsets_N1)

    def keys_between(self, segment: int, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        """The keys of a segment from ``first`` to ``last``, ascending, and the numbers of their documents."""
        keys = self.array(segment, "keys")
        within = sorted_slice(keys, first, last)
        return keys[within], self.array(segment, "rows")[within].astype(np.int64) + self.bounds[segment]


def grouped(groups_N: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Every group that occurs, with the places where it does, both ascending."""
    order = np.argsort(groups_N, kind="stable")
    ascending = groups_N[order]
    bounds = [*np.flatnonzero(run_starts(ascending)).tolist(), len(ascending)]
    for start, stop in itertools.pairwise(bounds):
        yield int(ascending[start]), order[start:stop]


def checksums(features: Features) -> np.ndarray:
    """A hash of each document's features, uint64 of shape (D,), by which a damaged file is noticed."""
    width = _words_of(features.values)
    words = np.ascontiguousarray(features.values).view(np.uint64).reshape(-1)
    return _checksums(words, features.firsts_D * width, features.sizes_D * width)


def _words_of(values: np.ndarray) -> int:
    """How many words of 8 bytes a row of features has."""
    return int(np.prod(values.shape[1:], dtype=np.int64)) * values.itemsize // 8


@compiled()
def _copy(source, firsts_D, sizes_D, target, places_D):
    for d in range(len(firsts_D)):
        target[places_D[d] : places_D[d] + sizes_D[d]] = source[firsts_D[d] : firsts_D[d] + sizes_D[d]]


@compiled()
def _checksums(words, firsts_D, sizes_D):
    found_D = np.empty(len(firsts_D), np.uint64)
    for d in range(len(firsts_D)):
        found_D[d] = hash_of(words, firsts_D[d], firsts_D[d] + sizes_D[d])
    return found_D
