"""What another policy changes: documents whose verdict differs between two layers, by rule."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from tasks.links import link_or_copy
from tasks.records import read_lineage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = 5
"""Ids shown for each change."""

_SHOWN_DIGITS = 12


class VerdictChange(BaseModel):
    """Documents that went from one rule to another; ``kept`` stands for no rule, ``absent`` for not there."""

    before: str
    after: str
    documents: int
    examples: list[str]


class VerdictChanges(BaseModel):
    """What differs between two layers of one stage."""

    documents: int
    """in one of the layers or both"""
    changed: int
    changes: list[VerdictChange]

    def __str__(self) -> str:
        lines = [f"{self.changed:,} of {self.documents:,} documents changed verdict"]
        if self.changes:
            rows = [("before", "after", "documents", "for example")]
            rows += [
                (change.before, change.after, f"{change.documents:,}", " ".join(_beginnings(change.examples)))
                for change in self.changes
            ]
            before, after, documents, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
            lines += [f"{b:<{before}}  {a:<{after}}  {d:>{documents}}  {ids}" for b, a, d, ids in rows]
        return "\n".join(lines)


def compare_verdicts(spark: SparkSession, before: Path, after: Path) -> VerdictChanges:
    """Compare the verdicts of two layers, document by document.

    The verdict of a document that is removed is the alphabetically first of the rules that it failed.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    old = _verdicts(spark, before).withColumnRenamed("rule", "before")
    new = _verdicts(spark, after).withColumnRenamed("rule", "after")
    both = old.join(new, "id", "full").fillna("absent", ["before", "after"]).cache()
    counts = {
        (row["before"], row["after"]): row["count"]
        for row in both.groupBy("before", "after").count().collect()
    }
    first = F.row_number().over(Window.partitionBy("before", "after").orderBy("id")) <= EXAMPLES
    shown = both.where("before != after").withColumn("first", first).where("first").collect()
    both.unpersist()
    examples: dict[tuple[str, str], list[str]] = {}
    for row in sorted(shown, key=lambda row: row["id"]):
        examples.setdefault((row["before"], row["after"]), []).append(row["id"])
    changes = [
        VerdictChange(before=way[0], after=way[1], documents=counts[way], examples=ids)
        for way, ids in sorted(examples.items(), key=lambda item: (-counts[item[0]], item[0]))
    ]
    changed = sum(change.documents for change in changes)
    return VerdictChanges(documents=sum(counts.values()), changed=changed, changes=changes)


def keep_for_comparison(layer: Path, place: Path) -> None:
    """Keep what `compare_verdicts` needs of a layer, for the next run; the files are linked where they can
    be."""
    partial, replaced = (place.with_name(f".{place.name}.{what}") for what in ("partial", "replaced"))
    for leftover in (partial, replaced):
        shutil.rmtree(leftover, ignore_errors=True)
    partial.mkdir(parents=True)
    shutil.copy(layer / "lineage.json", partial)
    for part in ("documents", "ledger"):
        (partial / part).mkdir()
        for path in sorted((layer / part).glob("*.parquet")):
            link_or_copy(path, partial / part / path.name)
    if place.exists():
        place.rename(replaced)  # a removal that is killed half-way must not leave half of it under its name
    partial.rename(place)
    shutil.rmtree(replaced, ignore_errors=True)


def same_policy(before: Path, after: Path) -> bool:
    """Whether two layers were made by stages with the same parameters."""
    return read_lineage(before) == read_lineage(after)


def _verdicts(spark: SparkSession, layer: Path) -> DataFrame:
    from pyspark.sql import functions as F

    kept = spark.read.parquet(str(layer / "documents")).select("id", F.lit("kept").alias("rule"))
    ledger = spark.read.parquet(str(layer / "ledger")).where("verdict != 'kept'")
    return kept.union(ledger.groupBy("id").agg(F.min("rule").alias("rule")))


def _beginnings(ids: list[str]) -> list[str]:
    """As much of each id as `gristmill explain` needs to know it by."""
    return [name[:_SHOWN_DIGITS] for name in ids]
