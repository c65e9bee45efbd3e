from __future__ import annotations

import numpy as np
import pytest

from tasks.corpus.deduplication.hyperplanes import cosines, expected_recall, hyperplane_keys

WIDTH = 48


def pairs_of(cosine: float, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of random vectors of the norm 1 and exactly this cosine, (P, E) each."""
    random = np.random.default_rng(seed)
    left = random.standard_normal((count, WIDTH))
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    other = random.standard_normal((count, WIDTH))
    other -= (other * left).sum(axis=1, keepdims=True) * left
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    return left.astype(np.float32), (cosine * left + np.sqrt(1 - cosine**2) * other).astype(np.float32)


@pytest.mark.parametrize("cosine", [0.0, 0.7, 0.9, 0.97])
@pytest.mark.parametrize(("bands", "bits"), [(1, 1), (8, 12), (20, 16)], ids=["1x1", "8x12", "20x16"])
def test_pairs_of_a_cosine_share_a_key_as_often_as_expected(cosine: float, bands: int, bits: int) -> None:
    found = []
    for seed in range(8):  # hyperplanes are drawn once for all pairs: one drawing alone says little
        left, right = pairs_of(cosine, 500, seed)
        keys = [hyperplane_keys(side, bands, bits, seed) for side in (left, right)]
        found.append((keys[0] == keys[1]).any(axis=1).mean())
    assert np.mean(found) == pytest.approx(expected_recall(cosine, bands, bits), abs=0.025)


def test_expected_recall_is_that_of_the_angle() -> None:
    assert expected_recall(0.5, 1, 1) == pytest.approx(2 / 3)
    assert expected_recall(0.5, 3, 2) == pytest.approx(1 - (1 - 4 / 9) ** 3)
    assert expected_recall(1.0, 1, 64) == 1
    assert expected_recall(-1.0, 5, 1) == 0


def test_signs_are_those_of_the_projections() -> None:
    vectors, _ = pairs_of(0.0, 200)
    normals = np.random.RandomState(3).standard_normal((5, WIDTH))
    agree = (vectors[:1] @ normals.T >= 0) == (vectors @ normals.T >= 0)
    keys = hyperplane_keys(vectors, 5, 1, 3)
    assert ((keys[:1] == keys) == agree).all()


def test_the_vectors_beside_one_do_not_show_in_its_keys() -> None:
    vectors, _ = pairs_of(0.0, 50)
    keys = hyperplane_keys(vectors, 4, 8, 1)
    assert (hyperplane_keys(vectors[::-3], 4, 8, 1) == keys[::-3]).all()
    assert (hyperplane_keys(vectors[7:8], 4, 8, 1) == keys[7]).all()


def test_another_seed_gives_other_keys_and_bands_are_told_apart() -> None:
    vectors, _ = pairs_of(0.0, 20)
    assert (hyperplane_keys(vectors, 4, 16, 1) != hyperplane_keys(vectors, 4, 16, 2)).all()
    zeros = hyperplane_keys(np.zeros((1, WIDTH), np.float32), 6, 3, 1)
    assert len(set(zeros[0].tolist())) == 6


def test_cosines_are_those_of_numpy_and_stay_within_bounds() -> None:
    left, right = pairs_of(0.8, 30)
    assert cosines(left, right) == pytest.approx([0.8] * 30, abs=1e-6)
    assert (cosines(left, right) == cosines(right, left)).all()
    long = np.full((2, WIDTH), 1.0, np.float32)
    assert cosines(long, long * [[1], [-1]]).tolist() == [1, -1]
    assert cosines(np.zeros_like(left), right).tolist() == [0] * 30


@pytest.mark.parametrize(("bands", "bits"), [(0, 8), (4, 0), (4, 65)])
def test_bands_and_bits_that_cannot_be_are_refused(bands: int, bits: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        hyperplane_keys(np.zeros((1, WIDTH), np.float32), bands, bits, 1)
    with pytest.raises(ValueError, match="must be"):
        expected_recall(0.9, bands, bits)


def test_a_threshold_that_is_no_cosine_is_refused() -> None:
    with pytest.raises(ValueError, match="a cosine is from -1 to 1"):
        expected_recall(1.1, 4, 8)
