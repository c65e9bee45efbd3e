"""Unique documents in, the training mixture out: how often each group is seen, and what is held out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pydantic import Field, field_validator, model_validator

from tasks.corpus.mixture.plan import Group, Level, Planned, fixed_epochs, plan
from tasks.corpus.mixture.results import MixedGroup
from tasks.layer_files import read_documents
from tasks.records import (
    KEPT,
    REMOVED,
    DocumentReport,
    carry_lineage,
    order_key,
    unit_interval,
    write_layer,
)
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageError, StageParams, run_as_stage, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class MixParams(StageParams):
    """The proportions of the mixture."""

    seed: int = 1
    epochs: dict[str, float] = Field(
        default={}, description="how often a source is seen in one epoch; 1 where not named; not with levels"
    )
    levels: list[Level] = Field(
        default=[], description="shares asked for, from coarse to fine: of domains, in each of languages, …"
    )
    maximum_epochs: float = Field(
        default=4.0, gt=0, description="with levels: what is asked for beyond is shared among the others"
    )
    tokens: int | None = Field(
        default=None, ge=1, description="with levels: the size asked for; empty: as much as there is"
    )
    bytes_per_token: float = Field(
        default=4.0, gt=0, description="what `tokens` is reckoned by; reports/encode.json has the true number"
    )
    validation_share: float = Field(
        default=0.02, ge=0, lt=1, description="of the documents, held out by their content"
    )

    @field_validator("epochs")
    @classmethod
    def _are_numbers_of_times(cls, epochs: dict[str, float]) -> dict[str, float]:
        for source, times in epochs.items():
            if times < 0:
                raise ValueError(f"mix.epochs.{source} must be 0 or more, not {times:g}")
        return epochs

    @model_validator(mode="after")
    def _one_way(self) -> MixParams:
        if self.levels and self.epochs:
            raise ValueError("give the epochs of sources, or levels of shares, not both")
        if self.tokens is not None and not self.levels:
            raise ValueError("tokens is a budget for levels: name at least one, such as {by: source}")
        columns = [level.by for level in self.levels]
        if len(set(columns)) < len(columns):
            raise ValueError(f"every level needs a column of its own, not {', '.join(columns)}")
        return self

    @property
    def columns(self) -> list[str]:
        """The columns whose values make a group."""
        return [level.by for level in self.levels] or ["source"]

    @property
    def budget_bytes(self) -> float | None:
        """The size asked for, in bytes of text; None: as much as there is."""
        return self.tokens * self.bytes_per_token if self.tokens else None


class MixReport(DocumentReport):
    """What the mixture holds."""

    train_documents: int
    validation_documents: int
    train_bytes: int
    budget_bytes: int
    """what the levels asked for, or what there is"""
    grouped_by: list[str]
    groups: list[MixedGroup]
    train_characters_by_source: dict[str, int]


@stage
def mix(unique: Input, mixture: Output, params: MixParams, resources: Resources) -> MixReport:
    """Sample every group as often as asked, hold out a share for validation, and put all in a fixed order.

    ``epochs: {books: 2.5}`` takes every book twice and half of them a third time; 0 leaves a source out.
    ``levels`` ask for shares instead (see `tasks.corpus.mixture.plan`). What is held out is decided by the
    content and is never repeated. The copies of a document are apart in the order, which is that of a hash of
    seed, id and copy.

    Raises:
        StageError: ``epochs`` or a weight names what is not there; nothing is left, or no text.
    """
    from pyspark.sql import functions as F

    carry_lineage(unique, mixture)
    with spark_session("mix", resources) as spark:
        held_out = F.udf(is_held_out(params), "boolean", useArrow=True)(F.col("content"))
        documents = read_documents(spark, unique).withColumn("held_out", held_out)
        sizes = _sizes(documents, params.columns)
        planned = planned_groups(sizes, params)
        counts = write_layer(
            _drawn(documents, planned, params), mixture, "mix", params,
            extra=("split", "copy", "order"), order="order",
        )  # fmt: skip
        rows = read_documents(spark, mixture)
        splits = {
            row["split"]: row["rows"]
            for row in rows.groupBy("split").agg(F.count("*").alias("rows")).collect()
        }
        train = rows.where("split = 'train'")
        came_out = _sizes(train.withColumn("held_out", F.lit(False)), params.columns)
        characters = train.groupBy("source").agg(F.sum(F.length("text")).alias("length")).collect()
    if not splits.get("train"):
        raise StageError(
            "the mixture has no training document: see mix.epochs, mix.levels and mix.validation_share"
        )
    total = sum(came_out.values())
    if not total:
        raise StageError("the mixture's training documents are all empty: shares of no text mean nothing")
    return MixReport(
        **counts,
        train_documents=splits["train"],
        validation_documents=splits.get("validation", 0),
        train_bytes=total,
        budget_bytes=round(params.budget_bytes or sum(sizes.values())),
        grouped_by=params.columns,
        groups=[
            MixedGroup(
                group=list(group.group),
                asked=round(group.asked, 6),
                given=round(came_out.get(group.group, 0) / total, 6),
                epochs=round(group.epochs, 6),
                available_bytes=group.size,
                bytes=came_out.get(group.group, 0),
            )
            for group in planned
        ],
        train_characters_by_source={row["source"]: row["length"] for row in sorted(characters)},
    )


def planned_groups(sizes: Mapping[Group, int], params: MixParams) -> list[Planned]:
    """How often each group is seen; ``sizes`` are the bytes of its text that is not held out.

    Raises:
        StageError: ``epochs`` or a weight names what is not there.
    """
    if params.levels:
        return plan(sizes, params.levels, params.budget_bytes, params.maximum_epochs)
    return fixed_epochs(sizes, params.epochs)


def is_held_out(params: MixParams) -> Callable[[str], bool]:
    """Tells from the hash of a document's content whether it is for validation."""

    def drawn(content: str) -> bool:
        return unit_interval(params.seed, "validation", content) < params.validation_share

    return drawn


def _sizes(documents: DataFrame, columns: list[str]) -> dict[Group, int]:
    """Bytes of the text that is not held out, by group; a group that is all held out has 0."""
    from pyspark.sql import functions as F

    values = [F.coalesce(column, F.lit("und")).alias(column) for column in columns]
    counted = F.sum(F.when(F.col("held_out"), 0).otherwise(F.octet_length("text"))).alias("bytes")
    rows = documents.groupBy(*values).agg(counted).collect()
    return {tuple(row[column] for column in columns): row["bytes"] for row in sorted(rows)}


def _drawn(documents: DataFrame, planned: list[Planned], params: MixParams) -> DataFrame:
    """One row for each copy of a document, with its split and order, judged."""
    from pyspark.sql import functions as F

    columns = params.columns
    names = [f"group_{column}" for column in columns]
    epochs = documents.sparkSession.createDataFrame(
        [(*group.group, group.epochs) for group in planned],
        ", ".join(f"{name} string" for name in names) + ", epochs double",
    )
    same = [
        F.coalesce(documents[column], F.lit("und")) == epochs[name]
        for column, name in zip(columns, names, strict=True)
    ]
    copies = F.udf(_copies(params.seed), "int", useArrow=True)(F.col("id"), F.col("epochs"))
    order = F.udf(_order(params.seed), "string", useArrow=True)(F.col("id"), F.col("copy"))
    once, left_out = F.least(F.lit(1), F.ceil("epochs")), F.col("copies") == 0
    finding = F.struct(
        F.lit("mixture").alias("rule"),
        F.lit(0.0).alias("value"),
        F.col("epochs").alias("threshold"),
        F.lit("not drawn: its group is seen less than once an epoch").alias("detail"),
    )
    return (
        documents.join(F.broadcast(epochs), same, "left")
        .withColumn("copies", F.when(F.col("held_out"), once).otherwise(copies))
        .withColumn("copy", F.explode(F.sequence(F.lit(0), F.greatest(F.col("copies") - 1, F.lit(0)))))
        .withColumn("order", order)
        .withColumn("split", F.when(F.col("held_out"), "validation").otherwise("train"))
        .withColumn("verdict", F.when(left_out, REMOVED).otherwise(KEPT))
        .withColumn("findings", F.when(left_out, F.array(finding)).otherwise(F.array()))
        .drop("held_out", "copies", "epochs", *names)
    )


def _copies(seed: int):
    def drawn(name: str, epochs: float) -> int:
        whole = int(epochs)
        return whole + (unit_interval(seed, "copies", name) < epochs - whole)

    return drawn


def _order(seed: int):
    def key(name: str, copy: int) -> str:
        return order_key(seed, name, copy)

    return key


if __name__ == "__main__":
    run_as_stage(mix)
