from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tasks.corpus.deduplication.arrays import mapped_array, write_array
from tasks.corpus.deduplication.components import component_labels, contract
from tasks.corpus.deduplication.stars import components_in_rounds
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import StageError

Edges = list[tuple[int, int]]

HUGE = 2**62
GRAPHS: dict[str, tuple[Edges, dict[int, int]]] = {
    "two": ([(2, 1), (3, 2), (HUGE, 70), (70, HUGE + 5), (HUGE + 5, HUGE)],
            {1: 1, 2: 1, 3: 1, HUGE: 70, 70: 70, HUGE + 5: 70}),
    "chain": ([(i, i + 1) for i in range(500)], dict.fromkeys(range(501), 0)),
    "star": ([(7, i) for i in range(8, 300)], dict.fromkeys(range(7, 300), 7)),
    "repeated": ([(1, 2), (2, 1), (1, 2), (1, 1)], {1: 1, 2: 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", list(GRAPHS))
@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_edges_are_contracted_to_the_smallest_of_their_component(name: str, at_once: int) -> None:
    edges, expected = GRAPHS[name]
    pairs = np.array(edges, np.int64)
    nodes, roots = contract(
        ((pairs[i : i + 4, 0], pairs[i : i + 4, 1]) for i in range(0, len(pairs), 4)), at_once
    )
    assert dict(zip(nodes.tolist(), roots.tolist(), strict=True)) == expected
    assert nodes.tolist() == sorted(expected)


def test_nothing_is_contracted_to_nothing() -> None:
    assert [len(each) for each in contract([])] == [0, 0]
    empty = np.empty(0, np.int64)
    assert [len(each) for each in component_labels(empty, empty)] == [0, 0]


def in_rounds(
    edges: Edges, folder: Path, resources: Resources, rounds: int, parts: int = 3
) -> dict[int, int]:
    files = []
    for part in range(parts):
        files.append(folder / f"edges-{part}.npy")
        write_array(files[-1], np.array(edges[part::parts], np.int64).reshape(-1, 2))
    with spark_session("tests", resources) as spark:
        found, _ = components_in_rounds(spark, files, folder, rounds)
    labels = [(int(node), int(root)) for path in found for node, root in mapped_array(path)]
    assert len(dict(labels)) == len(labels)
    in_files = [{int(root) for _, root in mapped_array(path)} for path in found]
    assert sum(map(len, in_files)) == len(set().union(*in_files))
    return dict(labels)


@pytest.mark.parametrize("name", ["two", "chain", "star"])
def test_rounds_on_spark_give_the_same_labels(tmp_path: Path, resources: Resources, name: str) -> None:
    edges, expected = GRAPHS[name]
    assert in_rounds(edges, tmp_path, resources, rounds=14, parts=7) == expected


def test_components_that_do_not_converge_are_an_error(tmp_path: Path, resources: Resources) -> None:
    with pytest.raises(StageError, match="did not converge in 2 rounds"):
        in_rounds([(i, i + 1) for i in range(200)], tmp_path, resources, rounds=2, parts=8)
