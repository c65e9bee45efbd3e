"""Text read by Spark's workers straight from a layer's Parquet, a row group at a time.

Through Java each text is copied four times on its way to Python. Workers see the layer's folder, as they do
when they write one; Spark hands them the numbers of row groups, and takes back the narrow columns that they
make of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.records import parts_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class RowGroup:
    """Where a row group lies.

    Attributes:
        path: the Parquet file.
        group: its number within the file.
        number: its number within the layer.
    """

    path: str
    group: int
    number: int

    def batches(self, columns: Sequence[str], rows: int = 1024) -> Iterator[pyarrow.RecordBatch]:
        """Its rows, so many at a time."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(rows, row_groups=[self.group], columns=list(columns))


def row_groups(layer: Path) -> list[RowGroup]:
    """All row groups of a layer's documents, in order.

    Raises:
        StageError: if it is no layer, naming it.
    """
    import pyarrow.parquet as pq

    places = [
        (str(path.absolute()), group)
        for path in parts_of(layer)
        for group in range(pq.read_metadata(path).num_row_groups)
    ]
    return [RowGroup(path, group, number) for number, (path, group) in enumerate(places)]


def for_each_row_group(
    spark: SparkSession, groups: Sequence[RowGroup], function: Callable[[RowGroup], int]
) -> int:
    """Call ``function`` for every row group, each in a task, and add up what it returns."""
    numbers = spark.range(0, len(groups), 1, max(1, len(groups)))
    counts = numbers.mapInArrow(_called(list(groups), function), "count bigint").collect()
    return sum(row["count"] for row in counts)


def _called(groups: list[RowGroup], function: Callable[[RowGroup], int]) -> Callable[..., Any]:
    def called(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            counts = [function(groups[number]) for number in batch.column("id").to_pylist()]
            yield pa.RecordBatch.from_pydict({"count": pa.array(counts, pa.int64())})

    return called
