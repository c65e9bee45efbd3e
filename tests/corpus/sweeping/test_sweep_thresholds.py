from __future__ import annotations

import random

import numpy as np
import pytest

from tasks.corpus.sweeping.thresholds import Side, Tally, choose_thresholds, quantile, round_down, round_up

WRITTEN = [0.0, 0.001, 0.05, 0.1, 0.29, 0.3, 0.57, 0.7, 1, 2.5, 9.99, 50, 999, 1000, 100_000, 1e15, 1e-12]


def test_what_a_person_writes_with_three_digits_is_on_the_grid() -> None:
    for values in (np.array(WRITTEN), -np.array(WRITTEN)):
        assert round_down(values).tolist() == values.tolist()
        assert round_up(values).tolist() == values.tolist()


def test_rounding_stays_on_its_side_and_near() -> None:
    chance = np.random.default_rng(1)
    values = np.concatenate([chance.random(5000), 10 ** chance.uniform(-12, 18, 5000), [999.9999, 0.0999999]])
    values = np.concatenate([values, -values])
    down, up = round_down(values), round_up(values)
    assert (down <= values).all()
    assert (up >= values).all()
    assert (up - down <= 0.0101 * np.abs(values)).all()
    assert all(float(f"{value:.3g}") == value for value in (*down.tolist(), *up.tolist()))


def test_what_is_out_of_the_grid_keeps_its_place_in_the_order() -> None:
    values = np.array([-np.inf, -1e300, -1e-300, 1e-300, 1e300, np.inf])
    assert round_down(values).tolist() == [-np.inf, -1e300, -1e-12, 0, 1e300, np.inf]
    assert round_up(values).tolist() == [-np.inf, -1e300, 0, 1e-12, 1e300, np.inf]


@pytest.mark.parametrize("side", ["minimum", "maximum"])
@pytest.mark.parametrize("seed", range(5))
def test_counts_at_a_threshold_are_exact_whatever_the_parts(side: Side, seed: int) -> None:
    chance = random.Random(seed)
    values = np.array(
        [chance.choice([chance.random(), chance.uniform(-9, 9e4), 0.3, 50.0]) for _ in range(400)]
    )
    weights = np.array([[1, chance.randrange(1000)] for _ in values])
    whole, parts = Tally(side, 2), Tally(side, 2)
    whole.add(values, weights)
    order = np.array(chance.sample(range(400), 400))
    for piece in np.array_split(order, 7):
        parts.add(values[piece], weights[piece])
    thresholds, kept = whole.kept()
    assert [part.tolist() for part in parts.kept()] == [thresholds.tolist(), kept.tolist()]
    for threshold, sums in zip(thresholds, kept, strict=True):
        passing = values >= threshold if side == "minimum" else values <= threshold
        assert sums.tolist() == weights[passing].sum(axis=0).tolist()


def test_memory_is_that_of_the_grid_and_not_of_the_documents() -> None:
    tally, chance = Tally("maximum", 1), np.random.default_rng(1)
    for _ in range(20):
        tally.add(chance.random(20_000), np.ones((20_000, 1), np.int64))
    assert len(tally.at) < 900 * 6


def test_few_thresholds_are_all_chosen_and_many_are_thinned_to_the_ends() -> None:
    grid, documents = np.arange(1000.0), np.ones(1000, np.int64)
    assert choose_thresholds(grid[:199], documents[:199], 199).tolist() == list(range(199))
    chosen = choose_thresholds(grid, documents, 199)
    assert 100 <= len(chosen) <= 199
    assert (chosen[0], chosen[-1]) == (0, 999)


def test_thresholds_are_dense_where_documents_are_and_cover_where_few_are() -> None:
    grid = np.arange(10_000.0)
    documents = np.where(grid < 100, 1000, 1)
    chosen = choose_thresholds(grid, documents, 200)
    assert (chosen < 100).sum() >= 50
    assert np.diff(chosen).max() <= 150


def test_an_infinite_value_is_counted_and_is_no_threshold() -> None:
    tally = Tally("minimum", 1)
    tally.add(np.array([1.0, np.inf]), np.ones((2, 1), np.int64))
    grid, kept = tally.kept()
    assert [float(grid[n]) for n in choose_thresholds(grid, kept[:, 0], 10)] == [1.0]
    assert kept[0, 0] == 2


def test_a_quantile_is_a_value_that_documents_have() -> None:
    grid, documents = np.array([1.0, 2.0, 30.0]), np.array([50, 49, 1])
    assert [quantile(grid, documents, share) for share in (0.0, 0.5, 0.51, 0.99, 1.0)] == [1, 1, 2, 2, 30]
