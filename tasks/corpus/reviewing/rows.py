"""Rows of a layer's Parquet files, read part by part so that little is held at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.corpus.reviewing.smallest import id_bytes

BATCH_ROWS = 65536
TEXT_ROWS = 256
"""Rows with texts that are held at once, whatever the size of a row group."""


def read_columns(
    directory: Path, columns: list[str], within: tuple[str, str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Columns of all parts, of those row groups alone that may hold ids in the range ``within``."""
    for part in sorted(directory.glob("*.parquet")):
        with pq.ParquetFile(part) as file:
            groups = [
                number
                for number in range(file.num_row_groups)
                if within is None or _overlaps(file.metadata.row_group(number), *within)
            ]
            yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns)


def rows_of(
    directory: Path, ids: Collection[str], columns: list[str], batch_rows: int = BATCH_ROWS
) -> Iterator[dict[str, Any]]:
    """The rows of the given ids, with ``id`` and those of the columns that there are.

    Row groups that hold none of the ids are not read beyond their ids.
    """
    wanted = np.array(sorted(name.encode() for name in ids), "S32")
    if not len(wanted):
        return
    bounds = wanted[0].decode(), wanted[-1].decode()
    for part in sorted(directory.glob("*.parquet")):
        with pq.ParquetFile(part) as file:
            present = ["id", *(name for name in columns if name in file.schema_arrow.names)]
            for number in range(file.num_row_groups):
                if not _overlaps(file.metadata.row_group(number), *bounds):
                    continue
                names = file.read_row_group(number, columns=["id"]).column("id").combine_chunks()
                if not np.isin(id_bytes(names), wanted).any():
                    continue
                for batch in file.iter_batches(batch_rows, row_groups=[number], columns=present):
                    found = np.isin(id_bytes(batch.column("id")), wanted)
                    yield from batch.filter(pa.array(found)).to_pylist()


def _overlaps(group: pq.RowGroupMetaData, low: str, high: str) -> bool:
    """Whether a row group may hold ids from low to high; one without statistics may."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == "id":
            found = column.statistics
            return found is None or not found.has_min_max or (found.min <= high and low <= found.max)
    return True
