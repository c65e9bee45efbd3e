"""Connected components of a graph of any size, on Spark.

Each task first contracts its edges to stars by union-find (Tarjan, 1975). If what is left fits one task, that
task finishes; else large-star and small-star in turns (Kiveris et al., Connected Components in MapReduce and
Beyond, SoCC 2014) until nothing changes: a chain of n nodes takes O(log² n) rounds, and no step holds the
neighbours of a node in memory. Labels are the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.deduplication.ids import distinct_ids, ids_of, numbers_of
from tasks.stage import StageError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

EDGES_AT_ONCE = 1_000_000
"""Edges that a task takes in before it contracts them."""

EDGES_IN_A_TASK = 4_000_000
"""What one task contracts at the end (about 500 MB); more edges than these take rounds."""


def connected_components(
    edges: DataFrame, scratch: Path, max_rounds: int, edges_in_a_task: int = EDGES_IN_A_TASK
) -> tuple[DataFrame, int]:
    """Label every node of ``edges`` with the smallest of its component.

    ``edges`` has ``left`` and ``right``, ids of 16 bytes.

    Returns the labels (columns ``id``, ``component``) and the number of rounds. Each round is written below
    ``scratch``, so that its plan does not grow and a bounded disk, not memory, holds it.

    Raises:
        StageError: not converged after ``max_rounds``.
    """
    from pyspark.sql import functions as F

    spark = edges.sparkSession
    path = str(scratch / "contracted")
    edges.select("left", "right").mapInArrow(_stars(roots=False), "node binary, parent binary").write.parquet(
        path
    )
    stars = spark.read.schema("node binary, parent binary").parquet(path)
    if stars.count() <= edges_in_a_task:
        alone = stars.select(F.col("node").alias("left"), F.col("parent").alias("right")).coalesce(1)
        return alone.mapInArrow(_stars(roots=True), "id binary, component binary"), 1
    previous = None
    for number in range(1, max_rounds + 1):
        path = str(scratch / f"round-{number}")
        _small_star(_large_star(stars)).write.parquet(path)
        stars = spark.read.schema("node binary, parent binary").parquet(path)
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


def component_labels(left_E2: np.ndarray, right_E2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every node of the edges and the smallest node of its component, both (N, 2) of uint64."""
    nodes_N2, places = distinct_ids(np.concatenate([left_E2, right_E2]))
    roots_N = _roots(places[: len(left_E2)], places[len(left_E2) :], len(nodes_N2))
    return nodes_N2, nodes_N2[roots_N]


def contract(
    chunks: Iterable[tuple[np.ndarray, np.ndarray]], edges_at_once: int
) -> tuple[np.ndarray, np.ndarray]:
    """`component_labels` of all chunks of edges; holds the nodes and so many edges, not all edges."""
    held: list[tuple[np.ndarray, np.ndarray]] = []
    edges = 0
    labels = np.empty((0, 2), np.uint64), np.empty((0, 2), np.uint64)
    for chunk in chunks:
        held.append(chunk)
        edges += len(chunk[0])
        if edges >= edges_at_once:
            labels, held, edges = _with(labels, held), [], 0
    return _with(labels, held) if held else labels


def _with(
    labels: tuple[np.ndarray, np.ndarray], held: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    left_E2, right_E2 = (np.concatenate(columns) for columns in zip(labels, *held, strict=True))
    return component_labels(left_E2, right_E2)


@compiled()
def _roots(left_E, right_E, nodes):
    """The smallest node of each node's component: union by number, paths halved."""
    parents = np.arange(nodes)
    for e in range(len(left_E)):
        a, b = left_E[e], right_E[e]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        parents[max(a, b)] = min(a, b)
    for node in range(nodes):
        # Parents are smaller: they have their roots by now.
        parents[node] = parents[parents[node]]
    return parents


def _stars(roots: bool):
    """Contracts the edges of a partition to stars; with ``roots`` the middle of each is a node as well."""

    def contracted(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        names = ["id", "component"] if roots else ["node", "parent"]
        chunks = ((numbers_of(batch.column("left")), numbers_of(batch.column("right"))) for batch in batches)
        nodes_N2, roots_N2 = contract(chunks, EDGES_AT_ONCE)
        if not len(nodes_N2):
            return
        kept_N = np.full(len(nodes_N2), True) if roots else (nodes_N2 != roots_N2).any(axis=1)
        yield pa.RecordBatch.from_arrays([ids_of(nodes_N2[kept_N]), ids_of(roots_N2[kept_N])], names=names)

    return contracted


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
