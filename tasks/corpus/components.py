"""Connected components of a graph of any size, on Spark.

Kiveris et al., Connected Components in MapReduce and Beyond, SoCC 2014: large-star and small-star in turns
until nothing changes. A chain of n nodes takes O(log² n) rounds, and no step holds the neighbours of a node
in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tasks.stage import StageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def connected_components(edges: DataFrame, scratch: Path, max_rounds: int) -> tuple[DataFrame, int]:
    """Label every node of ``edges`` (columns ``left``, ``right``) with the smallest node of its component.

    Returns the labels (columns ``id``, ``component``) and the number of rounds. Each round is written below
    ``scratch``, so that its plan does not grow and a bounded disk, not memory, holds it.

    Raises:
        StageError: not converged after ``max_rounds``.
    """
    from pyspark.sql import functions as F

    spark = edges.sparkSession
    stars = edges.where("left != right").select(
        F.greatest("left", "right").alias("node"), F.least("left", "right").alias("parent")
    )
    previous = None
    for number in range(1, max_rounds + 1):
        path = str(scratch / f"round-{number}")
        _small_star(_large_star(stars)).write.parquet(path)
        stars = spark.read.schema("node string, parent string").parquet(path)
        # A sum of hashes names the set of edges: two rounds that agree in it and in number are equal.
        summary = stars.agg(F.count("*"), F.sum(F.xxhash64("node", "parent").cast("decimal(38,0)"))).first()
        if summary == previous:
            labels = stars.select(F.col("node").alias("id"), F.col("parent").alias("component"))
            roots = stars.select(F.col("parent").alias("id"), F.col("parent").alias("component")).distinct()
            return labels.union(roots), number
        previous = summary
    raise StageError(
        f"connected components of the near-duplicates did not converge in {max_rounds} rounds; "
        "raise dedup.max_rounds"
    )


def _large_star(edges: DataFrame) -> DataFrame:
    """Connect every larger neighbour of a node to the node's smallest neighbour (or itself)."""
    from pyspark.sql import functions as F

    both = edges.union(edges.select(F.col("parent").alias("node"), F.col("node").alias("parent")))
    smallest = both.groupBy("node").agg(F.least(F.col("node"), F.min("parent")).alias("smallest"))
    return (
        both.join(smallest, "node")
        .where(F.col("parent") > F.col("node"))
        .select(F.col("parent").alias("node"), F.col("smallest").alias("parent"))
        .distinct()
    )


def _small_star(edges: DataFrame) -> DataFrame:
    """Connect a node and its smaller neighbours to the smallest of them."""
    from pyspark.sql import functions as F

    smallest = edges.groupBy("node").agg(F.min("parent").alias("smallest"))
    neighbours = edges.join(smallest, "node").select(
        F.col("parent").alias("node"), F.col("smallest").alias("parent")
    )
    selves = smallest.select("node", F.col("smallest").alias("parent"))
    return neighbours.union(selves).where("node != parent").distinct()
