"""Work spread over Spark's executors: large files in pieces, and pieces in lots of about the same size."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tasks.corpus.found_files import FoundFile, NoFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPLIT_BYTES = 64 * 2**20
"""A longer file is read in pieces of about this size, where its format allows; it never shows in a layer."""

OPENING_BYTES = 2**17
"""What opening a file costs, as bytes read in the same time."""

MAX_LOTS = 20_000
"""Spark's driver keeps track of every lot."""

LOTS_A_CORE = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A file or a span of one, as an executor gets it; with ``rule``, something that is no file."""

    source: int
    path: bytes
    name: str
    start: int | None = None
    stop: int | None = None
    rule: str | None = None
    detail: str | None = None
    weight: int = 0


PIECE_COLUMNS = {
    "source": "int", "path": "binary", "name": "string", "start": "bigint", "stop": "bigint",
    "rule": "string", "detail": "string",
}  # fmt: skip


def pieces_of(
    source: int, file: FoundFile, kind: str | None, *, start: int = 0, groups: int = 0
) -> Iterator[Piece]:
    """Cut a file into pieces, by its bytes from ``start`` on or by its row groups.

    ``kind`` is how the format may be split (see `split_kind`); None: not at all.
    """
    path = encoded(file.path)
    size = file.size or 0
    if kind == "bytes" and size > start:
        for at in range(start, size, SPLIT_BYTES):
            stop = min(at + SPLIT_BYTES, size)
            yield Piece(source, path, file.name, at, stop, weight=stop - at)
    elif is_cut_by_row_groups(file, kind) and groups > 1:
        count = min(groups, -(-size // SPLIT_BYTES))
        edges = [number * groups // count for number in range(count + 1)]
        for first, last in pairwise(edges):
            yield Piece(source, path, file.name, first, last, weight=size // count)
    else:
        yield Piece(source, path, file.name, weight=size)


def is_cut_by_row_groups(file: FoundFile, kind: str | None) -> bool:
    """Whether the number of a file's row groups has to be known."""
    return kind == "row_groups" and (file.size or 0) > SPLIT_BYTES


def piece_of_fault(source: int, fault: NoFile) -> Piece:
    """A piece that stands for what is no file: it becomes an entry of the ledger."""
    return Piece(source, b"", fault.name, rule=fault.rule, detail=fault.detail)


def encoded(path: str) -> bytes:
    """A path as bytes: a local one may be no UTF-8."""
    return path.encode("utf-8", "surrogateescape")


def decoded(path: bytes) -> str:
    """The path that `encoded` was given."""
    return path.decode("utf-8", "surrogateescape")


def spread(
    spark: SparkSession, rows: list[dict[str, Any]], columns: dict[str, str], weights: list[int]
) -> DataFrame:
    """Rows as a DataFrame whose partitions weigh about the same; ``weights`` are bytes."""
    import pyarrow as pa

    types = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string(), "binary": pa.binary()}
    if not rows:
        return spark.createDataFrame([], ", ".join(f"{name} {kind}" for name, kind in columns.items()))
    count = min(len(rows), MAX_LOTS, max(LOTS_A_CORE * _cores(spark), sum(weights) // SPLIT_BYTES))
    lots = balanced([weight + OPENING_BYTES for weight in weights], count)
    table = pa.Table.from_pylist(rows, pa.schema([(name, types[kind]) for name, kind in columns.items()]))
    table = table.append_column("lot", pa.array(lots, pa.int32()))
    return spark.createDataFrame(table).repartitionById(count, "lot").drop("lot")


def balanced(weights: list[int], lots: int) -> list[int]:
    """The lot of each item: the heaviest first, each into the lightest lot (LPT; Graham 1969)."""
    loads = [(0, lot) for lot in range(lots)]
    assigned = [0] * len(weights)
    for item in sorted(range(len(weights)), key=lambda item: (-weights[item], item)):
        load, lot = heapq.heappop(loads)
        assigned[item] = lot
        heapq.heappush(loads, (load + weights[item], lot))
    return assigned


def _cores(spark: SparkSession) -> int:
    return spark.sparkContext.defaultParallelism
