"""A layer less some rows: its parts are rewritten one by one, nothing is moved.

The general way (see `tasks.records.write_layer`) shuffles and sorts all text. Where a stage only drops
documents, what it reads is in order already, and each part can be filtered where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.layer_files import parts_of, reading

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile


@dataclass(frozen=True)
class Part:
    """A part of a layer: its file, and the number of its first row within the layer."""

    path: Path
    first: int


@dataclass(frozen=True)
class PartFilter:
    """Writes what stays of a part into the folder ``documents``.

    ``removed`` are files of numbers of rows (``.npy``, int64, ascending); none may be in two of them. A task
    holds two row groups.
    """

    documents: Path
    removed: Sequence[Path]

    def filter(self, part: Part) -> Counter[tuple[str, str]]:
        """Write the part; returns how many documents stay by source and language."""
        import pyarrow.parquet as pq

        counts: Counter[tuple[str, str]] = Counter()
        with (
            reading(part.path),
            pq.ParquetFile(part.path) as before,
            pq.ParquetWriter(
                self.documents / part.path.name, before.schema_arrow, compression="zstd"
            ) as kept,
            ThreadPoolExecutor(1) as reader,
        ):
            # The next row group is read and filtered while this one is written.
            firsts = [part.first]
            for number in range(before.num_row_groups):
                firsts.append(firsts[-1] + before.metadata.row_group(number).num_rows)
            ahead = [
                reader.submit(self._staying, before, number, firsts[number])
                for number in range(min(1, before.num_row_groups))
            ]
            for number in range(before.num_row_groups):
                staying = ahead.pop().result()
                if number + 1 < before.num_row_groups:
                    ahead.append(reader.submit(self._staying, before, number + 1, firsts[number + 1]))
                if staying.num_rows:
                    kept.write_table(staying, row_group_size=2**31 - 1)
                counts.update(_counted(staying))
        return counts

    def _staying(self, part: ParquetFile, row_group: int, first: int) -> pyarrow.Table:
        import pyarrow as pa

        rows = part.read_row_group(row_group)
        stays_R = np.ones(rows.num_rows, bool)
        for path in self.removed:
            numbers = np.load(path, mmap_mode="r")
            start, stop = np.searchsorted(numbers, [first, first + rows.num_rows])
            stays_R[numbers[start:stop] - first] = False
        return rows if stays_R.all() else rows.filter(pa.array(stays_R))


def layer_parts(layer: Path) -> list[Part]:
    """The parts of a layer, in order.

    Raises:
        StageError: if it is no layer.
    """
    import pyarrow.parquet as pq

    found, first = [], 0
    for path in parts_of(layer):
        found.append(Part(path.absolute(), first))
        first += pq.read_metadata(path).num_rows
    return found


def count_part(path: Path) -> Counter[tuple[str, str]]:
    """How many documents of each source and language a part has."""
    import pyarrow.parquet as pq

    with reading(path):
        return Counter(_counted(pq.read_table(path, columns=["source", "language"])))


def _counted(rows: pyarrow.Table) -> dict[tuple[str, str], int]:
    import pyarrow as pa

    grouped = pa.table({name: rows.column(name) for name in ("source", "language")})
    counted = grouped.group_by(["source", "language"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["source"], row["language"] or "und"): row["count_all"] for row in counted}
