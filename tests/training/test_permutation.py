import numpy as np
import pytest

from tasks.training.permutation import permute


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097])
def test_every_value_comes_exactly_once(size):
    values = permute(np.arange(size), size, (1, 2))
    assert sorted(values) == list(range(size))


def test_a_value_does_not_depend_on_what_else_is_asked_for():
    whole = permute(np.arange(1000), 1000, (7,))
    assert permute(np.array([731]), 1000, (7,)) == whole[731]


def test_another_key_is_another_order():
    orders = {tuple(permute(np.arange(100), 100, (seed, epoch))) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_a_size_beyond_memory_is_no_matter():
    values = permute(np.arange(1000), 2**40 + 7, (3,))
    assert len(set(values)) == 1000
    assert values.max() < 2**40 + 7
    assert values.min() >= 0


def test_the_order_is_mixed():
    # Of a random order's neighbours about two in a thousand lie side by side; in file order all do.
    values = permute(np.arange(1000), 1000, (0, 0))
    assert (np.abs(np.diff(values)) == 1).sum() < 20
    # The mean displacement of a random permutation of n is n / 3.
    assert np.abs(values - np.arange(1000)).mean() == pytest.approx(333, rel=0.15)
