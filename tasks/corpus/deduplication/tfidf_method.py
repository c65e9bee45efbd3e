"""Near-duplicates by the cosine of their TF-IDF vectors: candidates share one of their rarest words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from tasks.corpus.deduplication.arrays import bounded_runs, mapped_array, places_of_runs, write_array
from tasks.corpus.deduplication.method import Measured
from tasks.corpus.deduplication.segments import Features
from tasks.corpus.deduplication.tfidf import (
    FREQUENCY_SLOTS,
    SparseVectors,
    cosines,
    document_frequencies,
    prefix_keys,
    vectors,
)
from tasks.corpus.scoring.segments import segment_words
from tasks.distributed import run_tasks
from tasks.parameters import StageParams
from tasks.row_groups import RowGroup

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

TERMS_AT_ONCE = 2**20
"""Of the pairs that are compared at once (32 MiB)."""

TABLES = 16
"""Tables of frequencies that are made side by side, and added up at the end."""


class TfidfParams(StageParams):
    """Duplicates by the words that documents have, whatever their order."""

    min_cosine: float = Field(
        default=0.9, gt=0, le=1, description="of the TF-IDF vectors of two documents; verified for each pair"
    )


@dataclass(frozen=True)
class TfidfMethod:
    """The features of a document are its words' hashes and weights, as the bits of float64.

    ``table`` is a file with the documents of each word (see `document_frequencies`) among ``documents``.
    """

    table: Path
    documents: int
    threshold: float
    name: str = "tfidf"
    rule: str = "tfidf_duplicate"

    def measure(self, texts: pyarrow.StringArray) -> Measured:
        """Vectors, and their rarest words as keys."""
        frequencies = mapped_array(self.table)
        found = vectors(segment_words(texts, places=False), frequencies, self.documents)
        keys_K, key_offsets_D1 = prefix_keys(found, frequencies, self.threshold)
        values_T2 = np.stack([found.terms_T, found.weights_T.view(np.uint64)], axis=1)
        return Measured(values_T2, found.offsets_D1, keys_K, key_offsets_D1)

    def similarities(self, documents: Features, left_P: np.ndarray, right_P: np.ndarray) -> np.ndarray:
        """The cosines."""
        sizes_D = documents.sizes_D
        held = [np.empty(0)]
        for start, stop in bounded_runs(sizes_D[left_P] + sizes_D[right_P], TERMS_AT_ONCE):
            sides = (left_P[start:stop], right_P[start:stop])
            held.append(cosines(*(_vectors(documents, side) for side in sides)))
        return np.concatenate(held)


def count_documents(spark: SparkSession, groups: Sequence[RowGroup], folder: Path) -> Path:
    """The table of a layer's words, in a file of ``folder``."""
    shares = [groups[number::TABLES] for number in range(TABLES)]

    def counted(task: tuple[int, Sequence[RowGroup]]) -> Path:
        number, mine = task
        total = np.zeros(FREQUENCY_SLOTS, np.int32)
        for batch in _texts(mine):
            total += document_frequencies(segment_words(batch, places=False))
        path = folder / f"frequencies-{number:02d}.npy"
        write_array(path, total)
        return path

    folder.mkdir(parents=True, exist_ok=True)
    parts = run_tasks(spark, [task for task in enumerate(shares) if task[1]], counted)
    total = np.zeros(FREQUENCY_SLOTS, np.int32)
    for part in parts:
        total += mapped_array(part)
    write_array(folder / "frequencies.npy", total)
    return folder / "frequencies.npy"


def _texts(groups: Sequence[RowGroup]) -> Iterator[Any]:
    for group in groups:
        for batch in group.batches(["text"]):
            yield batch.column("text")


def _vectors(documents: Features, side_P: np.ndarray) -> SparseVectors:
    firsts, sizes = documents.firsts_D[side_P], documents.sizes_D[side_P]
    values_T2 = documents.values[places_of_runs(firsts, sizes)]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return SparseVectors(
        np.ascontiguousarray(values_T2[:, 0]), np.ascontiguousarray(values_T2[:, 1]).view(np.float64), offsets
    )
