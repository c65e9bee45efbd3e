"""Shingles of all documents, in files that every worker maps into memory: one for each row group.

A document's shingles are many times an id: joined to pairs by Spark they took most of the time of
deduplication. Here a pair carries two places, and whoever compares them looks there.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from tasks.corpus.deduplication.shingles import Shingles

PLACE = ("row_group", "first", "size")
"""Where a document's shingles lie: the file, the first number there, how many there are."""


def shingle_file(folder: Path, row_group: int) -> Path:
    """The file of a row group: the hashes of its documents, uint64, back to back."""
    return folder / f"{row_group:06d}.shingles"


def gathered(folder: str, groups_D: np.ndarray, firsts_D: np.ndarray, sizes_D: np.ndarray) -> Shingles:
    """The shingles at these places, back to back."""
    offsets_D1 = np.concatenate([[0], np.cumsum(sizes_D, dtype=np.int64)])
    hashes_S = np.empty(offsets_D1[-1], np.uint64)
    for group in np.unique(groups_D).tolist():
        held = _mapped(folder, group)
        for d in np.flatnonzero(groups_D == group).tolist():
            hashes_S[offsets_D1[d] : offsets_D1[d + 1]] = held[firsts_D[d] : firsts_D[d] + sizes_D[d]]
    return Shingles(hashes_S, offsets_D1)


@functools.lru_cache(maxsize=256)
def _mapped(folder: str, group: int) -> np.ndarray:
    path = shingle_file(Path(folder), group)
    return np.memmap(path, np.uint64, mode="r") if path.stat().st_size else np.empty(0, np.uint64)
