from __future__ import annotations

import pytest

from tasks.parameters import ParameterError, validate
from tasks.training.kl_control import AdaptiveKl, FixedKl, next_coefficient
from tasks.training.ppo_update import PpoParams

ADAPTIVE = AdaptiveKl(coefficient=0.1, target=6.0, horizon=1000.0)


def test_a_fixed_coefficient_stays():
    assert next_coefficient(FixedKl(coefficient=0.1), 0.1, kl=100.0, responses=64) == 0.1


def test_on_target_an_adaptive_coefficient_stays():
    assert next_coefficient(ADAPTIVE, 0.1, kl=6.0, responses=64) == 0.1


@pytest.mark.parametrize(
    ("kl", "error"),
    [(6.6, 0.1), (5.4, -0.1), (60.0, 0.2), (-3.0, -0.2)],
    ids=["over", "under", "far", "negative"],
)
def test_an_adaptive_coefficient_moves_by_the_clipped_relative_error(kl: float, error: float):
    moved = next_coefficient(ADAPTIVE, 0.1, kl=kl, responses=64)
    assert moved == pytest.approx(0.1 * (1 + error * 64 / 1000))


def test_the_kind_of_control_is_chosen_in_the_parameters():
    params = validate({"kl": {"kind": "adaptive", "target": 3.0}}, PpoParams, "params.yaml: ppo")
    assert params.kl == AdaptiveKl(target=3.0)
    with pytest.raises(ParameterError, match=r"kl.*fixed.*adaptive"):
        validate({"kl": {"kind": "linear"}}, PpoParams, "params.yaml: ppo")
