"""The exact similarity of pairs of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.shingle_files import PLACE, ShingleFiles
from tasks.corpus.deduplication.shingles import Shingles
from tasks.corpus.deduplication.similarity import Measure, similarities

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

SHINGLES_AT_ONCE = 2**22
"""Of the pairs that are compared at once (32 MiB): a hundred pairs of books are as much as ten thousand of
pages."""


def with_similarity(
    pairs: DataFrame, signed: DataFrame, files: Path, left: str, right: str, measure: Measure
) -> DataFrame:
    """The columns of ``pairs`` and the ``similarity`` of the two documents' sets of shingles.

    ``signed`` has the places of all documents' shingles in ``files``.
    """
    joined, columns = pairs, pairs.columns
    places = signed.select("id", *PLACE)
    for side in (left, right):
        named = places.withColumnsRenamed({"id": side} | {name: f"{side}_{name}" for name in PLACE})
        joined = joined.join(named, side)
    kinds = [f"`{field.name}` {field.dataType.simpleString()}" for field in pairs.schema.fields]
    return joined.mapInArrow(
        _compared(files.absolute(), left, right, columns, measure),
        ", ".join([*kinds, "similarity double"]),
    )


def bounded_runs(sizes_N: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """First and last (behind it) of runs whose sizes are at most ``limit`` together, or that are of one."""
    ends_N = np.cumsum(sizes_N)
    start = 0
    while start < len(sizes_N):
        before = ends_N[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends_N, before + limit, side="right")))
        yield start, stop
        start = stop


def _compared(
    folder: Path, left: str, right: str, columns: list[str], measure: Measure
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def compared(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        files = ShingleFiles(folder)
        for whole in batches:
            sizes_N = sum(whole.column(f"{side}_size").to_numpy().astype(np.int64) for side in (left, right))
            for start, stop in bounded_runs(np.asarray(sizes_N), SHINGLES_AT_ONCE):
                batch = whole.slice(start, stop - start)
                values = similarities(_shingles(batch, files, left), _shingles(batch, files, right), measure)
                kept = [batch.column(name) for name in columns]
                yield pa.RecordBatch.from_arrays([*kept, pa.array(values)], [*columns, "similarity"])

    return compared


def _shingles(batch: pyarrow.RecordBatch, files: ShingleFiles, side: str) -> Shingles:
    return files.gathered(*(batch.column(f"{side}_{name}").to_numpy() for name in PLACE))
