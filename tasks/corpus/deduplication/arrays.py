"""Arrays in files: written whole or not at all, mapped into memory when they are read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tasks.array_files import save_array


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array as ``.npy``.

    Raises:
        OSError: the disk is full; nothing is left of the file.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            save_array(file, array)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def mapped_array(path: Path) -> np.ndarray:
    """The array of a file, as it lies on the disk; what is not looked at is not read."""
    return np.asarray(np.load(path, mmap_mode="c"))


def run_starts(*columns: np.ndarray) -> np.ndarray:
    """Where a row differs from the one before in one of the columns, bool of shape (N,)."""
    starts_N = np.ones(len(columns[0]), bool)
    starts_N[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return starts_N


def bounded_runs(sizes_N: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """First and last (behind it) of runs whose sizes are at most ``limit`` together, or that are of one."""
    ends_N = np.cumsum(sizes_N)
    start = 0
    while start < len(sizes_N):
        before = ends_N[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends_N, before + limit, side="right")))
        yield start, stop
        start = stop


def places_of_runs(firsts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The places of several runs, one run after the other."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(firsts - (ends - sizes), sizes) + np.arange(total)


def sorted_slice(sorted_N: np.ndarray, first: int, last: int) -> slice:
    """Where in an ascending array the values from ``first`` to ``last``, both included, lie."""
    bounds = np.array([first, last], sorted_N.dtype)
    return slice(
        int(np.searchsorted(sorted_N, bounds[0], side="left")),
        int(np.searchsorted(sorted_N, bounds[1], side="right")),
    )


def equal_ranges(samples: Sequence[np.ndarray], ranges: int) -> list[tuple[int, int]]:
    """First and last value, both included, of so many ranges that have about as many of the samples each.

    Together they have all values of int64 from 0 on.
    """
    ascending = np.sort(np.concatenate([np.empty(0, np.int64), *samples]))
    places = np.linspace(0, len(ascending), ranges + 1)[1:-1].astype(np.int64)
    cuts = np.unique(ascending[places]) if len(ascending) else np.empty(0, np.int64)
    firsts = [0, *(cut for cut in cuts.tolist() if cut > 0)]
    return list(zip(firsts, [*(first - 1 for first in firsts[1:]), np.iinfo(np.int64).max], strict=True))
