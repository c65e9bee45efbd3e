"""Lines and paragraphs that many documents of a source have (menus, headers, notices) go from all of them.

Documents are read twice, a row group at a time: to count their passages, and to write them without those that
are repeated. What is left stays in the part where it was.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.corpus.deduplication.passage_counts import add_up, counter, ranges_for
from tasks.corpus.deduplication.passage_keys import RepeatedPassagesParams
from tasks.corpus.deduplication.passage_removal import EVIDENCE, LOSSES, PartWriter
from tasks.distributed import run_tasks
from tasks.layer_files import parts_of
from tasks.records import schema, write_sorted
from tasks.row_groups import row_groups
from tasks.stage import StageReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class RepeatedInSource(StageReport):
    """What went from the documents of one source."""

    passages: int = 0
    """different ones"""
    occurrences: int = 0
    characters: int = 0
    changed: int = 0
    """documents that stay, with less text"""
    removed: int = 0
    """documents that have no text left"""


class RepeatedReport(RepeatedInSource):
    """What went from all documents; the numbers are the sums of those of the sources."""

    by_source: dict[str, RepeatedInSource] = {}


def strip_repeated(
    spark: SparkSession, clean: Path, stripped: Path, steps: Path, params: RepeatedPassagesParams
) -> RepeatedReport:
    """Write the documents of ``clean`` without repeated passages to ``stripped``; every worker sees both.

    A passage goes wherever it is, if more than ``params.more_than`` documents of its source (or of the
    corpus) have it. Of a document that changes ``content`` is computed anew; nothing else changes. One that
    has no text left is not written: `repeated_ledger` has it. ``stripped/repeated.parquet`` has what went:
    the columns of `EVIDENCE`, sorted by ``passage``.

    Copies of one document make all of its passages repeated: what is given should be free of duplicates.

    ``steps`` is a folder for what is needed meanwhile; the ledger is read from it.

    Raises:
        StageError: ``clean`` is no layer.
    """
    held = (steps / "repeated").absolute()
    counts, keys, evidence, ledger = (held / name for name in ("counts", "keys", "evidence", "ledger"))
    documents = (stripped / "documents").absolute()
    for folder in (counts, keys, evidence, ledger, documents):
        folder.mkdir(parents=True)
    counted = run_tasks(spark, row_groups(clean), counter(params, counts))
    ranges = ranges_for(sum(counted))
    run_tasks(spark, range(ranges), lambda number: add_up(number, ranges, counts, keys, params.more_than))
    writer = PartWriter(params, keys, documents, evidence, ledger)
    losses = run_tasks(spark, [path.absolute() for path in parts_of(clean)], writer.write)
    found = _together(spark, evidence)
    write_sorted(found, held / "sorted", "passage", 0, then=["source"])
    (held / "sorted" / "part-00000.parquet").replace(stripped / "repeated.parquet")
    return _report(losses, found)


def repeated_ledger(steps: Path) -> list[Path]:
    """Files with the documents that `strip_repeated` left out, in the columns of `LEDGER`.

    The value is in how many documents the rarest of the passages is of which such a document was made.
    """
    return sorted((steps / "repeated" / "ledger").glob("*.parquet"))


def _together(spark: SparkSession, evidence: Path) -> DataFrame:
    """The evidence of all parts: a row for each passage of a source."""
    from pyspark.sql import functions as F

    rows = spark.read.schema(schema(EVIDENCE)).parquet(str(evidence))
    merged = rows.groupBy("source", "unit", "passage").agg(
        F.min("text").alias("text"),
        F.max("documents").alias("documents"),
        F.sum("occurrences").alias("occurrences"),
    )
    return merged.select(*EVIDENCE)


def _report(losses: list[list[dict[str, Any]]], evidence: DataFrame) -> RepeatedReport:
    numbers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in itertools.chain.from_iterable(losses):
        numbers[row["source"]].update({name: row.get(name, 0) for name in LOSSES if name != "source"})
    for row in evidence.groupBy("source").count().collect():
        numbers[row["source"]]["passages"] = row["count"]
    totals: Counter[str] = sum(numbers.values(), Counter())
    by_source = {source: RepeatedInSource(**numbers[source]) for source in sorted(numbers)}
    return RepeatedReport(**totals, by_source=by_source)
