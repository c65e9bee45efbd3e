"""What each stage did not pass on: the ledger of its layer, with the lengths of the layer before."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.corpus.profiling.results import LayerProfile, Loss, StageLosses
from tasks.corpus.profiling.summary import share
from tasks.layer_files import read_documents
from tasks.records import KEPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Gone = dict[str, dict[str | None, tuple[int, int]]]
"""By layer and rule, and under None for all rules together: documents and characters."""

STAGES = {"score": ("raw", "scored"), "clean": ("scored", "clean"), "dedup": ("clean", "unique"),
          "mix": ("unique", "mixture")}  # fmt: skip
"""The layers before and after each stage that lets documents go."""


def gone_documents(spark: SparkSession, layers: Mapping[str, Path]) -> Gone:
    """Documents of each layer's ledger that were not kept, in one Spark job: no text is moved."""
    from pyspark.sql import functions as F

    def union(tables: Iterable[DataFrame]) -> DataFrame:
        return functools.reduce(lambda left, right: left.unionByName(right), tables)

    nothing = F.lit(None).cast("string")
    gone = union(
        spark.read.parquet(str(layers[after] / "ledger"))
        .where(F.col("verdict") != KEPT)
        .select(F.lit(after).alias("layer"), "id", F.explode(F.array("rule", nothing)).alias("rule"))
        for _, after in STAGES.values()
    ).distinct()
    lengths = union(
        read_documents(spark, layers[before]).select(
            F.lit(after).alias("layer"), "id", F.length("text").alias("characters")
        )
        for before, after in STAGES.values()
    )
    counted = (
        gone.join(lengths, ["layer", "id"], "left")
        .groupBy("layer", "rule")
        .agg(F.count("*").alias("documents"), F.coalesce(F.sum("characters"), F.lit(0)).alias("characters"))
    )
    found: Gone = defaultdict(dict)
    for row in counted.collect():
        found[row["layer"]][row["rule"]] = (row["documents"], row["characters"])
    return found


def stage_losses(layers: Mapping[str, LayerProfile], gone: Gone) -> dict[str, StageLosses]:
    """The losses of each stage as shares of the layer before it."""
    losses = {}
    for stage, (name, after) in STAGES.items():
        before, of_layer = layers[name].total, gone.get(after, {})

        def loss(counted: tuple[int, int], whole=before) -> Loss:
            documents, characters = counted
            return Loss(
                documents=documents,
                document_share=share(documents, whole.documents),
                characters=characters,
                character_share=share(characters, whole.characters),
            )

        total = loss(of_layer.get(None, (0, 0)))
        rules = {rule: loss(counted) for rule, counted in of_layer.items() if rule is not None}
        trimmed = before.characters - total.characters - layers[after].total.characters
        losses[stage] = StageLosses(
            before=name,
            total=total,
            rules=dict(sorted(rules.items())),
            trimmed_characters=None if stage == "mix" else trimmed,
        )
    return losses
