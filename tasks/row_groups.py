"""The row groups of a layer, read by Spark's workers straight from its Parquet.

Through Java each text is copied four times on its way to Python. Workers see the layer's folder, as they do
when they write one; Spark hands them places (see tasks/distributed.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.layer_files import parts_of, reading

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class RowGroup:
    """Where a row group lies.

    Attributes:
        path: the Parquet file.
        group: its number within the file.
        number: its number within the layer.
        first: the number of its first row within the layer.
        rows: how many it has.
    """

    path: str
    group: int
    number: int
    first: int
    rows: int

    def batches(self, columns: Sequence[str], rows: int = 1024) -> Iterator[pyarrow.RecordBatch]:
        """Its rows, so many at a time.

        Raises:
            StageError: the file is damaged.
        """
        import pyarrow.parquet as pq

        with reading(self.path), pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(rows, row_groups=[self.group], columns=list(columns))


def row_groups(layer: Path) -> list[RowGroup]:
    """All row groups of a layer's documents, in order.

    Raises:
        StageError: if it is no layer, or one of its files is none of documents.
    """
    import pyarrow.parquet as pq

    found: list[RowGroup] = []
    first = 0
    for path in parts_of(layer):
        metadata = pq.read_metadata(path)
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            if rows:
                found.append(RowGroup(str(path.absolute()), group, len(found), first, rows))
            first += rows
    return found
