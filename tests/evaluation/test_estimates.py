from __future__ import annotations

import numpy as np
import pytest

from tasks.evaluation.estimates import NO_DATA, Estimate, mean, ratio


def test_a_mean_comes_with_its_standard_error():
    values_N = np.array([1.0, 2.0, 4.0, 9.0])
    found = mean(values_N)
    assert isinstance(found, Estimate)
    assert (found.value, found.observations) == (4.0, 4)
    assert found.standard_error == pytest.approx(values_N.std(ddof=1) / 2, rel=1e-6)


def test_a_ratio_weighs_units_by_what_they_count():
    found = ratio(np.array([10.0, 1.0]), np.array([5, 1]))
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(11 / 6, rel=1e-6)


def test_the_error_of_a_ratio_is_the_spread_over_repeated_samples():
    rng = np.random.default_rng(0)
    errors, values = [], []
    for _ in range(400):
        counts_N = rng.integers(1, 50, 80)
        found = ratio(counts_N * rng.normal(2.0, 0.5, 80), counts_N)
        assert isinstance(found, Estimate)
        assert found.standard_error is not None
        values.append(found.value)
        errors.append(found.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


def test_one_unit_has_no_error_and_none_is_no_data():
    assert mean(np.array([3.0])) == Estimate(value=3.0, standard_error=None, observations=1)
    assert mean(np.array([])) == NO_DATA
    assert ratio(np.array([0.0]), np.array([0])) == NO_DATA
