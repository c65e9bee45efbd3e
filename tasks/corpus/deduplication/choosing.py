"""Of every component of duplicates one document stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.corpus.deduplication.arrays import mapped_array, run_starts, write_array
from tasks.corpus.deduplication.components import contract
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.order import preference
from tasks.corpus.deduplication.segments import Segments
from tasks.corpus.deduplication.verification import similarity_of_pairs

REMOVED = "removed"
"""Files of documents that go, of dtype `REMOVAL`, by number."""

ROWS = "rows"
"""Files of the same as numbers of rows of the layer: int64, ascending."""

REMOVAL = np.dtype(
    [
        ("number", np.int64),
        ("kept", np.int64),
        ("id", np.uint64, 2),
        ("kept_id", np.uint64, 2),
        ("source", np.uint64),
        ("exact", np.bool_),
        ("similarity", np.float64),
    ]
)
"""A document that goes, the one that stays for it, and how alike they are."""

EDGES_IN_A_TASK = 4_000_000
"""What one task contracts at the end (about 300 MB); more edges than these take rounds."""


@dataclass(frozen=True)
class Chosen:
    """What the breakers look at, of the components of a task."""

    file: Path
    """of `REMOVED`"""
    rows: Path
    """of `ROWS`"""
    removed: int
    lost: Counter[int] = field(default_factory=Counter)
    """documents that go, by source"""
    cluster: int = 1
    """documents of the largest component, the one that stays counted"""
    kept: tuple[int, int] = (0, 0)
    """the id that stays of it"""


@dataclass(frozen=True)
class Choosing:
    """Chooses within components; ``folder`` takes the files `REMOVED`."""

    segments: Segments
    earlier: int
    method: Method
    folder: Path

    def of_edges(self, edges: list[Path]) -> Chosen:
        """The components of all edges, contracted in this task."""
        held = (mapped_array(path) for path in edges)
        return self._choose(0, *contract((pairs[:, 0], pairs[:, 1]) for pairs in held))

    def of_labels(self, task: tuple[int, Path]) -> Chosen:
        """The components of a numbered file of labels."""
        number, path = task
        labels_N2 = mapped_array(path)
        return self._choose(number, labels_N2[:, 0], labels_N2[:, 1])

    def _choose(self, number: int, nodes_N: np.ndarray, components_N: np.ndarray) -> Chosen:
        segments = Segments(self.segments.segments)
        documents_N = segments.documents(nodes_N)
        order = np.lexsort((preference(documents_N, nodes_N < self.earlier), components_N))
        nodes_N, components_N, documents_N = nodes_N[order], components_N[order], documents_N[order]
        starts_C = np.flatnonzero(run_starts(components_N))
        sizes_C = np.diff(np.append(starts_C, len(nodes_N)))
        best_N = np.repeat(starts_C, sizes_C)
        # Earlier documents stay, whatever a new one joins them to.
        goes_N = (np.arange(len(nodes_N)) != best_N) & (nodes_N >= self.earlier)
        removed_R = np.empty(int(goes_N.sum()), REMOVAL)
        removed_R["number"], removed_R["kept"] = nodes_N[goes_N], nodes_N[best_N][goes_N]
        removed_R["id"], removed_R["kept_id"] = documents_N["id"][goes_N], documents_N["id"][best_N][goes_N]
        removed_R["source"] = documents_N["source"][goes_N]
        removed_R["exact"] = _repeats_content(documents_N["content"])[goes_N]
        removed_R = removed_R[np.argsort(removed_R["number"])]
        removed_R["similarity"] = 1.0
        near_R = ~removed_R["exact"]
        pairs = np.stack([removed_R["kept"][near_R], removed_R["number"][near_R]], axis=1)
        removed_R["similarity"][near_R] = similarity_of_pairs(segments, self.earlier, self.method, pairs)
        path, rows = (self.folder / f"{what}-{number:06d}.npy" for what in (REMOVED, ROWS))
        write_array(path, removed_R)
        write_array(rows, removed_R["number"] - self.earlier)
        if not len(removed_R):
            return Chosen(path, rows, 0)
        keys, counts = np.unique(removed_R["source"], return_counts=True)
        gone_C = np.add.reduceat(goes_N, starts_C) + 1
        largest = int(np.argmax(gone_C))
        kept = tuple(documents_N["id"][starts_C[largest]].tolist())
        lost = Counter(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        return Chosen(path, rows, len(removed_R), lost, int(gone_C[largest]), (kept[0], kept[1]))


def _repeats_content(contents_N2: np.ndarray) -> np.ndarray:
    """Which documents have the content of one before them."""
    order = np.lexsort((np.arange(len(contents_N2)), contents_N2[:, 1], contents_N2[:, 0]))
    ascending = contents_N2[order]
    repeats_N = np.zeros(len(contents_N2), bool)
    repeats_N[order[1:]] = (ascending[1:] == ascending[:-1]).all(axis=1)
    return repeats_N
