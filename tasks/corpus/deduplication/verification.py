"""The exact similarity of pairs of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.corpus.deduplication.shingle_files import PLACE, gathered
from tasks.corpus.deduplication.shingles import Shingles
from tasks.corpus.deduplication.similarity import Measure, similarities

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


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
        _compared(str(files.absolute()), left, right, columns, measure),
        ", ".join([*kinds, "similarity double"]),
    )


def _compared(
    files: str, left: str, right: str, columns: list[str], measure: Measure
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def compared(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for whole in batches:
            for start in range(0, whole.num_rows, 1024):
                batch = whole.slice(start, 1024)
                values = similarities(_shingles(batch, files, left), _shingles(batch, files, right), measure)
                kept = [batch.column(name) for name in columns]
                yield pa.RecordBatch.from_arrays([*kept, pa.array(values)], [*columns, "similarity"])

    return compared


def _shingles(batch: pyarrow.RecordBatch, files: str, side: str) -> Shingles:
    return gathered(files, *(batch.column(f"{side}_{name}").to_numpy() for name in PLACE))
