"""Connected components of a graph of any size, on Spark: large-star and small-star in turns.

Kiveris et al., Connected Components in MapReduce and Beyond, SoCC 2014: a chain of n nodes takes O(log² n)
rounds, and no step holds the neighbours of a node in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.arrays import mapped_array, write_array
from tasks.stage import StageError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

LABELS = "labels"
"""Files of components: int64 of shape (N, 2), each node with the smallest of its component; a component is
in one file."""

EDGE = "node bigint, parent bigint"
ROWS_AT_ONCE = 1_000_000


def components_in_rounds(
    spark: SparkSession, edges: Sequence[Path], folder: Path, max_rounds: int
) -> tuple[list[Path], int]:
    """Write the files `LABELS` of a graph; returns them and the number of rounds.

    ``edges`` are files of int64 of shape (E, 2). Each round is written below ``folder``, so that its plan
    does not grow and a bounded disk, not memory, holds it.

    Raises:
        StageError: not converged after ``max_rounds``.
    """
    from pyspark.sql import functions as F

    stars = spark.range(0, len(edges), 1, max(1, len(edges))).mapInArrow(_edges_of(list(edges)), EDGE)
    previous = None
    for number in range(1, max_rounds + 1):
        path = str(folder / f"round-{number}")
        _small_star(_large_star(stars)).write.parquet(path)
        stars = spark.read.schema(EDGE).parquet(path)
        # A sum of hashes names the set of edges: two rounds that agree in it and in number are equal.
        summary = stars.agg(F.count("*"), F.sum(F.xxhash64("node", "parent").cast("decimal(38,0)"))).first()
        if summary == previous:
            roots = stars.select(F.col("parent").alias("node"), "parent").distinct()
            labels = stars.unionByName(roots).repartition("parent")
            files = labels.mapInArrow(_written(folder), "file string").collect()
            return [Path(row["file"]) for row in files], number
        previous = summary
    raise StageError(
        f"connected components of the near-duplicates did not converge in {max_rounds} rounds; "
        "raise dedup.max_rounds"
    )


def _edges_of(files: list[Path]) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def read(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column("id").to_pylist():
                held = mapped_array(files[number])
                for start in range(0, len(held), ROWS_AT_ONCE):
                    part = held[start : start + ROWS_AT_ONCE]
                    columns = [pa.array(part[:, 0]), pa.array(part[:, 1])]
                    yield pa.RecordBatch.from_arrays(columns, ["node", "parent"])

    return read


def _written(folder: Path) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def write(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa
        from pyspark import TaskContext

        columns = ("node", "parent")
        held = [np.stack([batch.column(name).to_numpy() for name in columns], 1) for batch in batches]
        context = TaskContext.get()
        if held and context is not None:
            path = folder / f"{LABELS}-{context.partitionId():06d}.npy"
            write_array(path, np.concatenate(held))
            yield pa.RecordBatch.from_pydict({"file": [str(path)]})

    return write


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
