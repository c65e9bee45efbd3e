"""Connected components by union-find (Tarjan, 1975), of as many edges as one process takes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tasks.compiled import compiled

EDGES_AT_ONCE = 1_000_000
"""Edges that are taken in before they are contracted."""


def component_labels(left_E: np.ndarray, right_E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every node of the edges, ascending, and the smallest of its component, both int64 of shape (N,)."""
    nodes_N, places = np.unique(np.concatenate([left_E, right_E]), return_inverse=True)
    roots_N = _roots(places[: len(left_E)], places[len(left_E) :], len(nodes_N))
    return nodes_N, nodes_N[roots_N]


def contract(
    chunks: Iterable[tuple[np.ndarray, np.ndarray]], edges_at_once: int = EDGES_AT_ONCE
) -> tuple[np.ndarray, np.ndarray]:
    """`component_labels` of all chunks of edges; holds the nodes and so many edges, not all edges."""
    held: list[tuple[np.ndarray, np.ndarray]] = []
    edges = 0
    labels = np.empty(0, np.int64), np.empty(0, np.int64)
    for chunk in chunks:
        held.append(chunk)
        edges += len(chunk[0])
        if edges >= edges_at_once:
            labels, held, edges = _with(labels, held), [], 0
    return _with(labels, held) if held else labels


def _with(
    labels: tuple[np.ndarray, np.ndarray], held: list[tuple[np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    left_E, right_E = (np.concatenate(columns) for columns in zip(labels, *held, strict=True))
    return component_labels(left_E, right_E)


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
