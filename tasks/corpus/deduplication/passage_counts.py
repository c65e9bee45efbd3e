"""In how many documents each passage is: counted exactly, in files, whatever the size of the corpus.

Each row group writes the keys of its passages, ascending, with its counts; then each task adds up one range
of keys over all row groups, and keeps what is repeated. Keys are hashes: ranges of equal width hold about as
many.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tasks.corpus.deduplication.passage_keys import RepeatedPassagesParams, keyed_passages
from tasks.row_groups import RowGroup

COUNTS_IN_A_RANGE = 4_000_000
"""What the task of one range holds (about 200 MB)."""


def counter(params: RepeatedPassagesParams, counts: Path) -> Callable[[RowGroup], int]:
    """Writes the counts of a row group into the folder ``counts``; returns how many those are."""

    def count(group: RowGroup) -> int:
        distinct = [np.empty(0, np.uint64)]
        for batch in group.batches(["text", "source", "kind"]):
            found = keyed_passages(batch, params)
            order = np.lexsort((found.keys_P, found.document_P))
            keys_P, document_P = found.keys_P[order], found.document_P[order]
            # Within a document a passage counts once.
            new_P = np.ones(len(order), bool)
            new_P[1:] = (keys_P[1:] != keys_P[:-1]) | (document_P[1:] != document_P[:-1])
            distinct.append(keys_P[new_P])
        keys_N, documents_N = np.unique(np.concatenate(distinct), return_counts=True)
        _write(counts / f"{group.number:06d}.counts", keys_N, documents_N)
        return len(keys_N)

    return count


def ranges_for(counted: int) -> int:
    """In how many ranges so many counts are added up."""
    return max(1, -(-counted // COUNTS_IN_A_RANGE))


def add_up(number: int, ranges: int, counts: Path, repeated: Path, more_than: int) -> int:
    """Write what is in more than so many documents of one range of keys; returns how many keys those are."""
    low, high = (edge * 2**64 // ranges for edge in (number, number + 1))
    held = [(np.empty(0, np.uint64), np.empty(0, np.uint64))]
    for path in sorted(counts.glob("*.counts")):
        keys_N, documents_N = _read(path)
        start = int(np.searchsorted(keys_N, np.uint64(low)))
        stop = len(keys_N) if high == 2**64 else int(np.searchsorted(keys_N, np.uint64(high)))
        held.append((np.array(keys_N[start:stop]), np.array(documents_N[start:stop])))
    keys_N, documents_N = (np.concatenate(columns) for columns in zip(*held, strict=True))
    order = np.argsort(keys_N, kind="stable")
    keys_N, documents_N = keys_N[order], documents_N[order]
    firsts_U = np.flatnonzero(np.append(True, keys_N[1:] != keys_N[:-1])[: len(keys_N)])
    documents_U = np.add.reduceat(documents_N, firsts_U) if len(firsts_U) else documents_N
    many_U = documents_U > more_than
    _write(repeated / f"{number:06d}.counts", keys_N[firsts_U][many_U], documents_U[many_U])
    return int(many_U.sum())


class RepeatedPassages:
    """What `add_up` wrote for all ranges, mapped into memory.

    One is made for each task: a worker outlives the stage, and another may write to the same folder.
    """

    def __init__(self, repeated: Path) -> None:
        self._ranges = [_read(path) for path in sorted(repeated.glob("*.counts"))]
        edges = [number * 2**64 // len(self._ranges) for number in range(len(self._ranges))]
        self._lows_R = np.array(edges, np.uint64)

    def documents_with(self, keys_P: np.ndarray) -> np.ndarray:
        """In how many documents each passage is, int64 of shape (P,); 0 for one that is not repeated."""
        found_P = np.zeros(len(keys_P), np.int64)
        range_P = np.searchsorted(self._lows_R, keys_P, side="right") - 1
        for number in np.unique(range_P).tolist():
            keys_N, documents_N = self._ranges[number]
            if not len(keys_N):
                continue
            asked = np.flatnonzero(range_P == number)
            places = np.minimum(np.searchsorted(keys_N, keys_P[asked]), len(keys_N) - 1)
            same = keys_N[places] == keys_P[asked]
            found_P[asked[same]] = documents_N[places[same]]
        return found_P


def _write(path: Path, keys_N: np.ndarray, documents_N: np.ndarray) -> None:
    """Keys, then counts, all uint64."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with unfinished.open("wb") as file:
        file.write(keys_N.astype(np.uint64).data)
        file.write(documents_N.astype(np.uint64).data)
    unfinished.replace(path)


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    if path.stat().st_size == 0:
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    keys_N, documents_N = np.memmap(path, np.uint64, mode="r").reshape(2, -1)
    return keys_N, documents_N
