from __future__ import annotations

import numpy as np
import pytest

from tasks.corpus.profiling.histograms import LENGTH_EDGES, SIGNAL_EDGES, binned, quantile


def test_a_value_on_an_edge_belongs_to_the_bin_that_begins_there():
    assert binned(np.array([0.0, 0.5, 1.0, 1.9, 2.0, 99.0]), (0, 1, 2)).tolist() == [2, 2, 2]


def test_values_that_were_not_measured_are_not_counted():
    assert binned(np.array([np.nan, 1.5]), (0, 1, 2)).tolist() == [0, 1, 0]


def test_values_out_of_bounds_are_in_the_outer_bins():
    assert binned(np.array([-3.0, np.inf]), (0, 1, 2)).tolist() == [1, 0, 1]


def test_parts_add_up_to_the_whole():
    values = np.random.default_rng(1).gamma(2, 2_000, 999)
    parts = sum(binned(part, LENGTH_EDGES) for part in np.array_split(values, 7))
    assert np.asarray(parts).tolist() == binned(values, LENGTH_EDGES).tolist()


def test_an_empty_text_has_a_bin_of_its_own():
    assert binned(np.array([0.0, 1.0, 2.0]), LENGTH_EDGES)[:3].tolist() == [1, 1, 1]


@pytest.mark.parametrize(("percent", "expected"), [(5, 0.0), (50, 4.0), (95, 9.0)])
def test_a_quantile_is_the_smallest_value_that_so_many_do_not_exceed(percent: int, expected: float):
    counts = binned(np.arange(10.0), range(10))
    assert quantile(counts, range(10), percent) == expected


def test_quantiles_of_shares_are_within_a_step_of_those_of_the_values():
    values = np.random.default_rng(2).beta(2, 5, 5_000)
    edges = SIGNAL_EDGES["toxicity"]
    for percent in (5, 50, 95):
        exact = float(np.quantile(values, percent / 100))
        assert quantile(binned(values, edges), edges, percent) == pytest.approx(exact, abs=0.0051)


@pytest.mark.parametrize("edges", [LENGTH_EDGES, *SIGNAL_EDGES.values()])
def test_edges_ascend(edges):
    assert list(edges) == sorted(set(edges))
