"""How the documents of two snapshots differ: which were added, removed and changed, in bounded memory."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import pyarrow as pa

GROUPS = ("source", "language", "domain", "kind")
"""Columns by whose values differences are counted."""

COMPARED = ("content", "language", "domain", "kind")
"""Columns by which a document of the same id has changed: what the stages made of it."""

CHANGES = ("added", "removed", "changed")
BUCKET_ROWS = 1_000_000
"""Documents of both snapshots that are held at once."""

_BATCH_ROWS = 65_536


@dataclass
class DocumentDifference:
    """Documents, each counted once however many copies it has."""

    before: int = 0
    after: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    """documents by `CHANGES`"""
    by: dict[str, dict[str, Counter[str]]] = field(default_factory=lambda: {group: {} for group in GROUPS})
    """documents by group, value and change; a changed one under the value that it has now"""


def compare_documents(
    before: Sequence[Path],
    after: Sequence[Path],
    scratch: Path,
    ids: TextIO | None = None,
    bucket_rows: int = BUCKET_ROWS,
) -> DocumentDifference:
    """Compare the documents in two lists of Parquet files.

    The rows are cut into ranges of the id, each small enough to be joined in memory; ``scratch`` is a folder
    that may be written to meanwhile. ``ids`` receives a JSON object a line, ``change`` and ``id``, in the
    order of the ids.
    """
    rows = sum(_rows(path) for path in [*before, *after])
    buckets = max(1, -(-rows // bucket_rows))
    difference = DocumentDifference()
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        sides = [_split(files, Path(folder) / name, buckets) for files, name in ((before, "a"), (after, "b"))]
        for old, new in zip(*sides, strict=True):
            _compare(_read(old), _read(new), difference, ids)
    return difference


def _rows(path: Path) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(path).num_rows


def _split(files: Sequence[Path], folder: Path, buckets: int) -> list[Path]:
    """Write the rows that are a document's first into a file for each range of the id."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    columns = ["id", "source", *COMPARED]
    schema = pa.schema([(name, pa.string()) for name in columns])
    folder.mkdir()
    paths = [folder / f"{number:06d}.arrow" for number in range(buckets)]
    ends = [f"{2**32 * (number + 1) // buckets:08x}" for number in range(buckets - 1)]
    with ExitStack() as stack:
        writers: list[Any] = [stack.enter_context(pa.ipc.new_file(path, schema)) for path in paths]
        for file in files:
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=[*columns, "copy"]):
                    first = batch.filter(pc.call_function("equal", [batch.column("copy"), pa.scalar(0)]))
                    first = first.select(columns).cast(schema)
                    for writer, part in zip(writers, _ranges(first, ends), strict=True):
                        writer.write_batch(part)
    return paths


def _ranges(batch: pa.RecordBatch, ends: list[str]) -> Iterator[pa.RecordBatch]:
    """The batch's rows sorted by id and cut before each of the ends."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    batch = batch.take(pc.call_function("sort_indices", [batch.column("id")]))
    ids = batch.column("id").to_numpy(zero_copy_only=False)
    cuts = [0, *(int(np.searchsorted(ids, end)) for end in ends), len(ids)] if len(ids) else None
    for number in range(len(ends) + 1):
        if cuts is None:
            yield pa.RecordBatch.from_pylist([], batch.schema)
        else:
            yield batch.slice(cuts[number], cuts[number + 1] - cuts[number])


def _read(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def _compare(old: pa.Table, new: pa.Table, difference: DocumentDifference, ids: TextIO | None) -> None:
    """Add what differs in one range of ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    difference.before += old.num_rows
    difference.after += new.num_rows
    joined = old.join(new, "id", join_type="full outer", left_suffix="_old", right_suffix="_new")
    joined = joined.sort_by("id") if ids else joined
    gone, fresh = (pc.call_function("is_null", [joined.column(f"source_{side}")]) for side in ("new", "old"))
    same = pa.chunked_array([pa.array([True] * joined.num_rows, pa.bool_())])
    for column in COMPARED:
        pair = [joined.column(f"{column}_{side}") for side in ("old", "new")]
        filled = [pc.call_function("coalesce", [values, pa.scalar("")]) for values in pair]
        same = pc.call_function("and", [same, pc.call_function("equal", filled)])
    change = pc.call_function(
        "case_when",
        [
            pc.call_function("make_struct", [fresh, gone, pc.call_function("invert", [same])]),
            pa.scalar("added"),
            pa.scalar("removed"),
            pa.scalar("changed"),
            pa.scalar(None, pa.string()),
        ],
    )
    columns = {"id": joined.column("id"), "change": change}
    for group in GROUPS:
        columns[group] = pc.call_function(
            "coalesce", [joined.column(f"{group}_new"), joined.column(f"{group}_old"), pa.scalar("")]
        )
    table = pa.table(columns).filter(pc.call_function("is_valid", [change]))
    for group in GROUPS:
        counted = table.group_by([group, "change"]).aggregate([("id", "count")])
        for row in counted.to_pylist():
            difference.by[group].setdefault(row[group], Counter())[row["change"]] += row["id_count"]
            if group == GROUPS[0]:
                difference.totals[row["change"]] += row["id_count"]
    if ids:
        for batch in table.select(["change", "id"]).to_batches(max_chunksize=_BATCH_ROWS):
            ids.writelines(f"{json.dumps(row)}\n" for row in batch.to_pylist())
