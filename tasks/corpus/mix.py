"""Unique documents in, the training mixture out: how often each source is seen, and what is held out."""

from __future__ import annotations

from pydantic import Field

from tasks.records import (
    KEPT,
    REMOVED,
    DocumentReport,
    carry_lineage,
    order_key,
    read_documents,
    unit_interval,
    write_layer,
)
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageError, StageParams, run_as_stage, stage


class MixParams(StageParams):
    """The proportions of the mixture."""

    seed: int = 1
    epochs: dict[str, float] = Field(
        default={}, description="how often a source is seen in one epoch; 1 where not named"
    )
    validation_share: float = Field(
        default=0.02, ge=0, lt=1, description="of the documents, held out by their content"
    )


class MixReport(DocumentReport):
    """What the mixture holds."""

    train_documents: int
    validation_documents: int
    train_characters_by_source: dict[str, int]


@stage
def mix(unique: Input, mixture: Output, params: MixParams, resources: Resources) -> MixReport:
    """Sample every source as often as asked, hold out a share for validation, and put all in a fixed order.

    ``epochs: {books: 2.5}`` takes every book twice and half of them a third time; 0 leaves a source out. What
    is held out is decided by the content and is never repeated. The copies of a document are apart in the
    order, which is that of a hash of seed, id and copy.

    Raises:
        StageError: ``epochs`` names a source that is not there, or a number below 0; nothing is left.
    """
    from pyspark.sql import functions as F

    carry_lineage(unique, mixture)
    with spark_session("mix", resources) as spark:
        documents = read_documents(spark, unique)
        present = sorted(row["source"] for row in documents.select("source").distinct().collect())
        _check(params, present)
        epochs = {source: params.epochs.get(source, 1.0) for source in present}
        asked = F.create_map(*(F.lit(item) for pair in epochs.items() for item in pair))[F.col("source")]
        copies = F.udf(_copies(params.seed), "int", useArrow=True)(F.col("id"), asked)
        held_out = F.udf(_held_out(params), "boolean", useArrow=True)(F.col("content"))
        order = F.udf(_order(params.seed), "string", useArrow=True)(F.col("id"), F.col("copy"))
        planned = documents.withColumn("epochs", asked).withColumn("held_out", held_out)
        planned = planned.withColumn(
            "copies", F.when(F.col("held_out"), F.least(F.lit(1), F.ceil("epochs"))).otherwise(copies)
        )
        left_out = F.col("copies") == 0
        judged = (
            planned.withColumn(
                "copy", F.explode(F.sequence(F.lit(0), F.greatest(F.col("copies") - 1, F.lit(0))))
            )
            .withColumn("order", order)
            .withColumn("split", F.when(F.col("held_out"), "validation").otherwise("train"))
            .withColumn("verdict", F.when(left_out, REMOVED).otherwise(KEPT))
            .withColumn(
                "findings",
                F.when(
                    left_out,
                    F.array(
                        F.struct(
                            F.lit("mixture").alias("rule"),
                            F.lit(0.0).alias("value"),
                            F.col("epochs").alias("threshold"),
                            F.lit("not drawn: its source is seen less than once an epoch").alias("detail"),
                        )
                    ),
                ).otherwise(F.array()),
            )
            .drop("held_out", "copies", "epochs")
        )
        counts = write_layer(judged, mixture, "mix", params, extra=("split", "copy", "order"), order="order")
        rows = read_documents(spark, mixture)
        seen = rows.groupBy("split", "source").agg(
            F.count("*").alias("rows"), F.sum(F.length("text")).alias("length")
        )
        groups = sorted(seen.collect())
    train = [group for group in groups if group["split"] == "train"]
    if not train:
        raise StageError("the mixture has no training document: see mix.epochs and mix.validation_share")
    return MixReport(
        **counts,
        train_documents=sum(group["rows"] for group in train),
        validation_documents=sum(group["rows"] for group in groups if group["split"] == "validation"),
        train_characters_by_source={group["source"]: group["length"] for group in train},
    )


def _check(params: MixParams, present: list[str]) -> None:
    for source, epochs in params.epochs.items():
        if source not in present:
            raise StageError(
                f"mix.epochs: no documents of a source `{source}`; there are {', '.join(present)}"
            )
        if epochs < 0:
            raise StageError(f"mix.epochs.{source} must be 0 or more, not {epochs}")


def _copies(seed: int):
    def drawn(name: str, epochs: float) -> int:
        whole = int(epochs)
        return whole + (unit_interval(seed, "copies", name) < epochs - whole)

    return drawn


def _held_out(params: MixParams):
    def drawn(content: str) -> bool:
        return unit_interval(params.seed, "validation", content) < params.validation_share

    return drawn


def _order(seed: int):
    def key(name: str, copy: int) -> str:
        return order_key(seed, name, copy)

    return key


if __name__ == "__main__":
    run_as_stage(mix)
