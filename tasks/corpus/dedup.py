"""Clean documents in, one of every group of duplicates out."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from tasks.corpus.components import connected_components
from tasks.corpus.minhash import bands, jaccard, shingles, signature
from tasks.records import KEPT, REMOVED, DocumentReport, carry_lineage, read_documents, write_layer
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageError, StageParams, run_as_stage, stage

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


BAND_COLUMNS = "id string, rank int, band int, key string"


class DedupParams(StageParams):
    """What counts as a duplicate. 14 bands of 8 rows find a pair of Jaccard 0.8 with probability 0.92."""

    shingle_words: int = Field(default=5, ge=1)
    bands: int = Field(default=14, ge=1)
    rows: int = Field(default=8, ge=1)
    min_jaccard: float = Field(
        default=0.8, gt=0, le=1, description="of the sets of shingles, verified for each pair"
    )
    seed: int = 1
    all_pairs_up_to: int = Field(
        default=16, ge=2, description="documents in a bucket; a larger one is compared with its keeper"
    )
    max_rounds: int = Field(default=50, ge=2, description="rounds of the connected components")
    max_source_loss: float = Field(
        default=0.9, gt=0, le=1, description="share of a source; above it the stage stops"
    )
    max_cluster_share: float = Field(
        default=0.1, gt=0, le=1, description="of all documents; a larger cluster stops the stage"
    )
    breaker_documents: int = Field(
        default=50, ge=1, description="sources and clusters of fewer documents stop nothing"
    )


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
    signatures and whose shingle sets have a Jaccard similarity of ``min_jaccard``; groups are the connected
    components of such verified pairs. The ledger has, for every removed document, the id that was kept and
    the similarity to it.

    Raises:
        StageError: a source lost more than ``max_source_loss``, or a cluster is larger than
            ``max_cluster_share`` of the corpus: with the evidence.
    """
    from pyspark.sql import functions as F

    carry_lineage(clean, unique)
    steps = unique / ".steps"
    with spark_session("dedup", resources) as spark:
        documents = read_documents(spark, clean)
        ranked = documents.select("id", "content", "source", (-F.length("text")).alias("rank"))
        exact = _stored(_exact_keepers(ranked), steps / "exact")
        distinct = documents.join(exact.where("id = kept").select("id"), "id", "left_semi")
        keyed = distinct.select("id", "text").mapInArrow(_bander(params), BAND_COLUMNS)
        candidates = _candidates(_stored(keyed, steps / "bands"), params)
        pairs = _stored(_with_similarity(candidates, distinct, "left", "right", params), steps / "pairs")
        verified = pairs.where(F.col("similarity") >= params.min_jaccard)
        labels, rounds = connected_components(verified.select("left", "right"), steps, params.max_rounds)
        near = _stored(_near_keepers(labels, ranked, distinct, params), steps / "near")
        removed = _stored(_removals(exact, near), steps / "removed")
        largest = _check_breakers(documents, removed, params)
        removed = removed.drop("source")
        judged = (
            documents.join(
                removed.withColumnRenamed("id", "removed_id"), F.col("id") == F.col("removed_id"), "left"
            )
            .withColumn("verdict", F.when(F.col("rule").isNull(), KEPT).otherwise(REMOVED))
            .withColumn(
                "findings",
                F.when(F.col("rule").isNull(), F.array()).otherwise(
                    F.array(F.struct("rule", "value", "threshold", F.col("kept").alias("detail")))
                ),
            )
            .drop("removed_id", "rule", "value", "threshold", "kept")
        )
        counts = write_layer(judged, unique, "dedup", params)
        candidate_pairs, verified_pairs = pairs.count(), verified.count()
    shutil.rmtree(steps)
    by_rule = counts["removed_by_rule"]
    return DedupReport(
        **counts,
        exact_duplicates=by_rule.get("exact_duplicate", 0),
        near_duplicates=by_rule.get("near_duplicate", 0),
        candidate_pairs=candidate_pairs,
        verified_pairs=verified_pairs,
        largest_cluster=largest,
        rounds=rounds,
    )


def _exact_keepers(ranked: DataFrame) -> DataFrame:
    """Every id with the id that is kept of all documents of the same content."""
    from pyspark.sql import functions as F

    best = ranked.groupBy("content").agg(F.min(F.struct("rank", "id")).alias("best"))
    return ranked.join(best, "content").select("id", "source", F.col("best.id").alias("kept"))


def _candidates(keyed: DataFrame, params: DedupParams) -> DataFrame:
    """Pairs that share a band: all pairs of a small bucket, a star around the keeper in a large one."""
    from pyspark.sql import functions as F

    sized = keyed.groupBy("band", "key").agg(
        F.min(F.struct("rank", "id")).alias("hub"), F.count("*").alias("size")
    )
    bucketed = keyed.join(sized.where("size > 1"), ["band", "key"])
    star = bucketed.where(F.col("size") > params.all_pairs_up_to).select(
        F.col("hub.id").alias("left"), F.col("id").alias("right")
    )
    small = bucketed.where(F.col("size") <= params.all_pairs_up_to)
    every = (
        small.select("band", "key", F.col("id").alias("left"))
        .join(small.select("band", "key", F.col("id").alias("right")), ["band", "key"])
        .where("left < right")
        .select("left", "right")
    )
    return (
        star.union(every)
        .where("left != right")
        .select(F.least("left", "right").alias("left"), F.greatest("left", "right").alias("right"))
        .distinct()
    )


def _bander(params: DedupParams):
    def banded(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            columns: dict[str, list] = {"id": [], "rank": [], "band": [], "key": []}
            for name, text in zip(
                batch.column("id").to_pylist(), batch.column("text").to_pylist(), strict=True
            ):
                items = shingles(text, params.shingle_words)
                if not items:
                    continue
                values = signature(items, params.bands * params.rows, params.seed)
                for band, key in enumerate(bands(values, params.bands, params.rows)):
                    columns["id"].append(name)
                    columns["rank"].append(-len(text))
                    columns["band"].append(band)
                    columns["key"].append(key.hex())
            types = pa.schema(
                [("id", pa.string()), ("rank", pa.int32()), ("band", pa.int32()), ("key", pa.string())]
            )
            yield pa.RecordBatch.from_pydict(columns, types)

    return banded


def _with_similarity(
    pairs: DataFrame, documents: DataFrame, left: str, right: str, params: DedupParams
) -> DataFrame:
    """``pairs`` with the exact Jaccard similarity of the two documents' shingle sets."""
    texts = documents.select("id", "text")
    joined = pairs.join(
        texts.withColumnsRenamed({"id": left, "text": "left_text"}), left
    ).join(texts.withColumnsRenamed({"id": right, "text": "right_text"}), right)  # fmt: skip
    joined = joined.select(left, right, "left_text", "right_text").sortWithinPartitions(left)
    return joined.mapInArrow(
        _comparer(params.shingle_words, left, right), f"{left} string, {right} string, similarity double"
    )


def _comparer(size: int, left: str, right: str):
    def compared(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        cut = lru_cache(maxsize=64)(lambda text: shingles(text, size))
        for batch in batches:
            texts = zip(
                batch.column("left_text").to_pylist(), batch.column("right_text").to_pylist(), strict=True
            )
            values = [jaccard(cut(a), cut(b)) for a, b in texts]
            yield pa.RecordBatch.from_arrays(
                [batch.column(left), batch.column(right), pa.array(values, pa.float64())],
                names=[left, right, "similarity"],
            )

    return compared


def _near_keepers(
    labels: DataFrame, ranked: DataFrame, documents: DataFrame, params: DedupParams
) -> DataFrame:
    """Every near-duplicate that goes, with the one of its component that is kept and the similarity to it."""
    from pyspark.sql import functions as F

    members = labels.join(ranked, "id")
    best = members.groupBy("component").agg(F.min(F.struct("rank", "id")).alias("best"))
    going = members.join(best, "component").select("id", F.col("best.id").alias("kept")).where("id != kept")
    return _with_similarity(going, documents, "id", "kept", params).withColumn(
        "threshold", F.lit(params.min_jaccard)
    )


def _removals(exact: DataFrame, near: DataFrame) -> DataFrame:
    """Both kinds of duplicate: id, source, rule, value, threshold, kept (never a removed one)."""
    from pyspark.sql import functions as F

    onward = near.select(F.col("id").alias("kept"), F.col("kept").alias("final"))
    exact_removed = (
        exact.where("id != kept")
        .join(onward, "kept", "left")
        .select("id", "source", F.lit("exact_duplicate").alias("rule"), F.lit(1.0).alias("value"),
                F.lit(1.0).alias("threshold"), F.coalesce("final", "kept").alias("kept"))
    )  # fmt: skip
    near_removed = near.join(exact.select("id", "source"), "id").select(
        "id",
        "source",
        F.lit("near_duplicate").alias("rule"),
        F.col("similarity").alias("value"),
        "threshold",
        "kept",
    )
    return exact_removed.union(near_removed)


def _check_breakers(documents: DataFrame, removed: DataFrame, params: DedupParams) -> int:
    """Stop if a source is eaten or the corpus is one cluster; return the size of the largest cluster."""
    from pyspark.sql import functions as F

    totals = {row["source"]: row["count"] for row in documents.groupBy("source").count().collect()}
    for row in removed.groupBy("source").count().orderBy("source").collect():
        lost, total = row["count"], totals[row["source"]]
        if total >= params.breaker_documents and lost / total > params.max_source_loss:
            kept = removed.where(F.col("source") == row["source"]).groupBy("kept").count()
            worst = kept.orderBy(F.desc("count"), "kept").first()
            shown = f"; {worst['count']} of them for {worst['kept']}" if worst else ""
            raise StageError(
                f"source {row['source']} would lose {lost} of its {total} documents to deduplication{shown}. "
                "Look at that document; if it is right, raise dedup.max_source_loss"
            )
    largest = removed.groupBy("kept").count().orderBy(F.desc("count"), "kept").first()
    if largest is None:
        return 1
    size = largest["count"] + 1
    if size >= params.breaker_documents and size / sum(totals.values()) > params.max_cluster_share:
        raise StageError(
            f"{size} of {sum(totals.values())} documents are one cluster of duplicates of {largest['kept']}. "
            "Look at that document; if it is right, raise dedup.max_cluster_share"
        )
    return size


def _stored(rows: DataFrame, path: Path) -> DataFrame:
    """Computed once, read as often as needed."""
    rows.write.parquet(str(path))
    return rows.sparkSession.read.schema(rows.schema).parquet(str(path))


if __name__ == "__main__":
    run_as_stage(dedup)
