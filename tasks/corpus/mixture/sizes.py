"""How much text of each group a layer holds, read from its files without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.corpus.mixture.plan import Group
from tasks.layer_files import MIXTURE_COLUMNS, parts_of, reading

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 1024


def unique_sizes(
    unique: Path, columns: Sequence[str], is_held_out: Callable[[str], bool]
) -> dict[Group, int]:
    """Bytes of text that is not held out, by group: what stage mix finds in the layer of unique documents.

    Raises:
        StageError: it is no layer, or a file of it cannot be read.
    """

    def counts(batch: pyarrow.RecordBatch) -> list[bool]:
        return [not is_held_out(content) for content in batch.column("content").to_pylist()]

    return _sizes(unique, columns, "content", counts)


def training_sizes(mixture: Path, columns: Sequence[str]) -> dict[Group, int]:
    """Bytes of training text of a mixture, its copies counted, by group.

    Raises:
        StageError: it is no layer, or a file of it cannot be read.
    """

    def counts(batch: pyarrow.RecordBatch) -> list[bool]:
        return [split == "train" for split in batch.column("split").to_pylist()]

    return _sizes(mixture, columns, "split", counts)


def _sizes(
    layer: Path, columns: Sequence[str], told_by: str, counts: Callable[[pyarrow.RecordBatch], list[bool]]
) -> dict[Group, int]:
    """Bytes of the text that counts; a group of which nothing counts has 0."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    sizes: Counter[Group] = Counter()
    read = [*columns, "text", told_by]
    for part in parts_of(layer, {name: MIXTURE_COLUMNS[name] for name in read}):
        with reading(part), pq.ParquetFile(part) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=read):
                text_bytes = pc.call_function("binary_length", [batch.column("text")])
                length = pc.call_function("if_else", [pa.array(counts(batch), pa.bool_()), text_bytes, 0])
                groups = [pc.fill_null(batch.column(column), "und") for column in columns]
                rows = pa.table([*groups, length], [*columns, "bytes"])
                for row in rows.group_by(list(columns)).aggregate([("bytes", "sum")]).to_pylist():
                    sizes[tuple(row[column] for column in columns)] += row["bytes_sum"] or 0
    return dict(sorted(sizes.items()))
