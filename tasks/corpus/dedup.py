"""Clean documents in, one of every group of duplicates out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from tasks.corpus.deduplication.breakers import BreakerParams, check_breakers
from tasks.corpus.deduplication.candidates import candidate_pairs
from tasks.corpus.deduplication.components import connected_components
from tasks.corpus.deduplication.signing import SIGNED, SignatureParams, signer
from tasks.corpus.deduplication.similarity import Measure
from tasks.corpus.deduplication.verification import with_similarity
from tasks.layer_filter import write_filtered
from tasks.records import DocumentReport, carry_lineage
from tasks.resources import Resources
from tasks.row_groups import for_each_row_group, row_groups
from tasks.spark import rows_in_a_batch, spark_session
from tasks.stage import Input, Output, run_as_stage, stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DedupParams(BreakerParams):
    """What counts as a duplicate. 14 bands of 8 rows find a pair of Jaccard 0.8 with probability 0.92."""

    shingle_words: int = Field(default=5, ge=1)
    bands: int = Field(default=14, ge=1)
    rows: int = Field(default=8, ge=1)
    measure: Measure = Field(
        default="jaccard", description="how alike two documents are; containment: how much of the shorter one"
    )
    min_similarity: float = Field(
        default=0.8, gt=0, le=1, description="of the sets of shingles, verified for each pair"
    )
    seed: int = 1
    all_pairs_up_to: int = Field(
        default=64, ge=2, description="documents in a bucket; a larger one is compared with its longest"
    )
    max_rounds: int = Field(default=50, ge=2, description="rounds of the connected components")


class DedupReport(DocumentReport):
    """What was found alike."""

    exact_duplicates: int
    near_duplicates: int
    candidate_pairs: int
    verified_pairs: int
    largest_cluster: int
    rounds: int


@stage
def dedup(clean: Input, unique: Output, params: DedupParams, resources: Resources) -> DedupReport:
    """Keep one document of every group of duplicates: the longest, of equals the one with the smallest id.

    Exact duplicates share a content hash. Near-duplicates are candidates that share a band of their MinHash
    signatures and whose shingle sets have a similarity of ``min_similarity``; groups are the connected
    components of such verified pairs. The ledger has, for every removed document, the id that was kept and
    the similarity to it.

    Raises:
        StageError: a source lost more than ``max_source_loss``, or a cluster is larger than
            ``max_cluster_share`` of the corpus: with the evidence.
    """
    from pyspark.sql import functions as F

    carry_lineage(clean, unique)
    steps = unique / ".steps"
    shingles, signatures = (steps / "shingles").absolute(), (steps / "signed").absolute()
    for folder in (shingles, signatures):
        folder.mkdir(parents=True)
    with spark_session("dedup", resources) as spark, rows_in_a_batch(spark, 65_536):
        signing = SignatureParams(params.shingle_words, params.bands, params.rows, params.seed)
        documents = for_each_row_group(spark, row_groups(clean), signer(signing, shingles, signatures))
        signed = spark.read.schema(SIGNED).parquet(str(signatures))
        exact = _stored(_exact_duplicates(signed), steps / "exact")
        distinct = signed.join(exact.select("id"), "id", "left_anti").where("keys is not null")
        candidates = candidate_pairs(distinct, documents, params.bands, params.all_pairs_up_to)
        pairs = with_similarity(candidates, signed, shingles, "left", "right", params.measure)
        compared = _stored(pairs, steps / "compared")
        verified = compared.where(F.col("similarity") >= params.min_similarity)
        labels, rounds = connected_components(verified, steps, params.max_rounds)
        near = _stored(_near_duplicates(labels, signed), steps / "near")
        likeness = with_similarity(near, signed, shingles, "id", "kept", params.measure)
        removed = _stored(_removals(exact, near, likeness, params), steps / "removed")
        largest = check_breakers(signed, removed, params)
        counts = write_filtered(spark, clean, _ledger(removed), unique, "dedup", params)
        compared_pairs, verified_pairs = compared.count(), verified.count()
    shutil.rmtree(steps)
    by_rule = counts["removed_by_rule"]
    return DedupReport(
        **counts,
        exact_duplicates=by_rule.get("exact_duplicate", 0),
        near_duplicates=by_rule.get("near_duplicate", 0),
        candidate_pairs=compared_pairs,
        verified_pairs=verified_pairs,
        largest_cluster=largest,
        rounds=rounds,
    )


def _exact_duplicates(signed: DataFrame) -> DataFrame:
    """Every document but the best of those of the same content, with the id of that one."""
    return _with_best(signed.select("id", "source", "rank", "content"), "content").where("id != kept")


def _near_duplicates(labels: DataFrame, signed: DataFrame) -> DataFrame:
    """Every near-duplicate that goes, with the best of its component, which stays."""
    members = labels.join(signed.select("id", "source", "rank"), "id")
    return _with_best(members, "component").where("id != kept")


def _with_best(members: DataFrame, group: str) -> DataFrame:
    """``id`` and ``source`` of every member, and in ``kept`` the id of the best of its group."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    best = F.min(F.struct("rank", "id")).over(Window.partitionBy(group))
    return members.select("id", "source", best.getField("id").alias("kept"))


def _removals(exact: DataFrame, near: DataFrame, likeness: DataFrame, params: DedupParams) -> DataFrame:
    """Both kinds of duplicate: id, source, rule, value, threshold, kept (never a removed one)."""
    from pyspark.sql import functions as F

    onward = near.select(F.col("id").alias("kept"), F.col("kept").alias("final"))
    exact_removed = exact.join(onward, "kept", "left").select(
        "id", "source", F.lit("exact_duplicate").alias("rule"), F.lit(1.0).alias("value"),
        F.lit(1.0).alias("threshold"), F.coalesce("final", "kept").alias("kept"),
    )  # fmt: skip
    near_removed = likeness.select(
        "id", "source", F.lit("near_duplicate").alias("rule"), F.col("similarity").alias("value"),
        F.lit(params.min_similarity).alias("threshold"), "kept",
    )  # fmt: skip
    return exact_removed.union(near_removed)


def _ledger(removed: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    return removed.select(
        F.lower(F.hex("id")).alias("id"), "rule", "value", "threshold", F.lower(F.hex("kept")).alias("detail")
    )


def _stored(rows: DataFrame, path: Path) -> DataFrame:
    """Computed once, read as often as needed."""
    rows.write.option("compression", "lz4").parquet(str(path))
    return rows.sparkSession.read.schema(rows.schema).parquet(str(path))


if __name__ == "__main__":
    run_as_stage(dedup)
