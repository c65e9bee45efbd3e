from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tasks.corpus.deduplication.components import (
    EDGES_IN_A_TASK,
    component_labels,
    connected_components,
    contract,
)
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import StageError

BOTH = pytest.mark.parametrize("edges_in_a_task", [0, EDGES_IN_A_TASK], ids=["rounds", "one-task"])


def name(number: int) -> bytes:
    return number.to_bytes(16, "big")


def labels(
    edges: list[tuple[int, int]],
    scratch: Path,
    resources: Resources,
    edges_in_a_task: int,
    rounds: int = 50,
    parts: int = 3,
) -> dict[int, int]:
    with spark_session("tests", resources) as spark:
        rows = [(name(left), name(right)) for left, right in edges]
        frame = spark.createDataFrame(rows, "left binary, right binary").repartition(parts)
        found, _ = connected_components(frame, scratch, rounds, edges_in_a_task)
        collected = [(int.from_bytes(row["id"]), int.from_bytes(row["component"])) for row in found.collect()]
        assert len(dict(collected)) == len(collected)
        return dict(collected)


@BOTH
def test_components_have_their_smallest_node_as_label(
    tmp_path: Path, resources: Resources, edges_in_a_task: int
) -> None:
    edges = [(2, 1), (3, 2), (2**80, 2**70), (2**70, 2**127 + 5), (2**127 + 5, 2**80)]
    expected = {1: 1, 2: 1, 3: 1, 2**80: 2**70, 2**70: 2**70, 2**127 + 5: 2**70}
    assert labels(edges, tmp_path, resources, edges_in_a_task) == expected


@BOTH
def test_a_long_chain_takes_few_rounds(tmp_path: Path, resources: Resources, edges_in_a_task: int) -> None:
    edges = [(i, i + 1) for i in range(500)]
    found = labels(edges, tmp_path, resources, edges_in_a_task, rounds=14, parts=7)
    assert found == dict.fromkeys(range(501), 0)


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_edges_contracted_chunk_by_chunk_have_the_same_labels(at_once: int) -> None:
    random = np.random.default_rng(0)
    edges = random.integers(0, 60, (40, 2, 2)).astype(np.uint64)
    edges[:, :, 0] = 0
    nodes, roots = contract(((edges[i : i + 4, 0], edges[i : i + 4, 1]) for i in range(0, 40, 4)), at_once)
    expected = component_labels(edges[:, 0], edges[:, 1])
    assert (nodes == expected[0]).all()
    assert (roots == expected[1]).all()
    assert contract([], at_once)[0].shape == (0, 2)


def test_components_that_do_not_converge_are_an_error(tmp_path: Path, resources: Resources) -> None:
    edges = [(i, i + 1) for i in range(200)]
    with pytest.raises(StageError, match="did not converge in 2 rounds"):
        labels(edges, tmp_path, resources, 0, rounds=2, parts=8)


@BOTH
def test_no_edges_are_no_components(tmp_path: Path, resources: Resources, edges_in_a_task: int) -> None:
    assert labels([], tmp_path, resources, edges_in_a_task) == {}
