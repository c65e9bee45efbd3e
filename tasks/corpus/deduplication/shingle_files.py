"""Shingles of all documents, in files that every worker maps into memory: one for each row group.

A document's shingles are many times an id: joined to pairs by Spark they took most of the time of
deduplication. Here a pair carries two places, and whoever compares them looks there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tasks.corpus.deduplication.shingles import Shingles

PLACE = ("row_group", "first", "size")
"""Where a document's shingles lie: the file, the first number there, how many there are."""


def shingle_file(folder: Path, row_group: int) -> Path:
    """The file of a row group: the hashes of its documents, uint64, back to back."""
    return folder / f"{row_group:06d}.shingles"


class ShingleFiles:
    """The files of a folder, mapped when they are first needed.

    One is made for each task: a worker outlives the stage, and another may write to the same folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[int, np.ndarray] = {}

    def gathered(self, groups_D: np.ndarray, firsts_D: np.ndarray, sizes_D: np.ndarray) -> Shingles:
        """The shingles at these places, back to back."""
        offsets_D1 = np.concatenate([[0], np.cumsum(sizes_D, dtype=np.int64)])
        hashes_S = np.empty(offsets_D1[-1], np.uint64)
        for group in np.unique(groups_D).tolist():
            held = self._mapped(group)
            for d in np.flatnonzero(groups_D == group).tolist():
                hashes_S[offsets_D1[d] : offsets_D1[d + 1]] = held[firsts_D[d] : firsts_D[d] + sizes_D[d]]
        return Shingles(hashes_S, offsets_D1)

    def _mapped(self, group: int) -> np.ndarray:
        if group not in self._held:
            path = shingle_file(self._folder, group)
            empty = path.stat().st_size == 0
            self._held[group] = np.empty(0, np.uint64) if empty else np.memmap(path, np.uint64, mode="r")
        return self._held[group]
