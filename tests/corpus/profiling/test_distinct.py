from __future__ import annotations

import random

import numpy as np
import pytest

from tasks.corpus.profiling.distinct import Distinct, merge_distinct, nothing_seen, seen, standard_error


def uniform(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def as_lists(sketch: Distinct) -> tuple[list[int], list[int]]:
    return sketch.hashes_K.tolist(), sketch.counts_K.tolist()


def test_below_its_size_a_sketch_counts_exactly():
    sketch = seen(nothing_seen(100), np.concatenate([uniform(60), uniform(60), uniform(30, 1)]))
    assert sketch.distinct() == 90
    assert sketch.mean_count() == 150 / 90
    assert sketch.single_share() == 30 / 90


@pytest.mark.parametrize("seed", range(5))
def test_beyond_its_size_the_estimate_is_within_three_standard_errors(seed: int):
    hashes = uniform(200_000, seed)
    estimate = seen(nothing_seen(1024), np.concatenate([hashes, hashes[:50_000]])).distinct()
    assert abs(estimate / 200_000 - 1) < 3 * standard_error(1024)


def test_the_stated_standard_error_is_that_of_many_estimates():
    errors = [seen(nothing_seen(64), uniform(4_000, seed)).distinct() / 4_000 - 1 for seed in range(300)]
    assert np.std(errors) == pytest.approx(standard_error(64), rel=0.15)
    assert abs(np.mean(errors)) < 3 * standard_error(64) / 300**0.5


def test_the_order_and_the_parts_do_not_matter():
    hashes = np.concatenate([uniform(5_000), uniform(5_000)[:3_000], uniform(900, 1)])
    whole = seen(nothing_seen(256), hashes)
    shuffled = hashes.copy()
    np.random.default_rng(7).shuffle(shuffled)
    one_by_one = nothing_seen(256)
    for part in np.array_split(shuffled, 37):
        one_by_one = seen(one_by_one, part)
    parts = [seen(nothing_seen(256), part) for part in np.array_split(shuffled, 11)]
    random.Random(3).shuffle(parts)
    assert as_lists(one_by_one) == as_lists(whole) == as_lists(merge_distinct(parts))


def test_frequencies_of_what_is_kept_are_exact_whatever_was_forgotten_meanwhile():
    hashes = uniform(3_000)
    sketch = nothing_seen(128)
    for _ in range(4):
        sketch = seen(sketch, hashes)
    assert sketch.counts_K.tolist() == [4] * 128


def test_fewer_are_expected_among_some_draws_than_there_are_in_all():
    once = seen(nothing_seen(10_000), uniform(2_000))
    drawn = once.drawn(2_000, 500)
    assert drawn == pytest.approx(2_000 * (1 - (1 - 500 / 2_000)))
    assert once.drawn(2_000, 2_000) == 2_000
    assert once.drawn(2_000, 2_001) is None


def test_texts_of_different_size_that_repeat_alike_have_as_many_distinct_among_as_many_draws():
    rng = np.random.default_rng(5)
    vocabulary = uniform(3_000)
    found = []
    for total in (100_000, 400_000):
        words = vocabulary[np.minimum(rng.zipf(1.3, total), 3_000) - 1]
        drawn = seen(nothing_seen(4096), words).drawn(total, 20_000)
        assert drawn is not None
        found.append(drawn)
    assert found[0] == pytest.approx(found[1], rel=0.05)


def test_nothing_seen_is_nothing():
    nothing = nothing_seen(16)
    assert nothing.distinct() == 0
    assert nothing.mean_count() is None
    assert nothing.single_share() is None
    assert nothing.drawn(0, 1) is None
