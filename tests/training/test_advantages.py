from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tasks.training.advantages import generalised_advantages
from tasks.training.masked import whiten


def by_definition(
    rewards: Tensor, values: Tensor, length: int, discount: float, gae_lambda: float
) -> list[float]:
    """Σ_l (γλ)^l (r_{t+l} + γ V_{t+l+1} − V_{t+l}), every sum from scratch."""
    advantages = []
    for t in range(length):
        total = 0.0
        for k in range(t, length):
            following = float(values[k + 1]) if k + 1 < length else 0.0
            delta = float(rewards[k]) + discount * following - float(values[k])
            total += (discount * gae_lambda) ** (k - t) * delta
        advantages.append(total)
    return advantages


@pytest.mark.parametrize(("discount", "gae_lambda"), [(1.0, 0.95), (0.9, 0.5), (1.0, 0.0), (1.0, 1.0)])
def test_advantages_are_those_of_the_definition(discount: float, gae_lambda: float):
    generator = torch.Generator().manual_seed(1)
    rewards = torch.randn(3, 9, generator=generator)
    values = torch.randn(3, 9, generator=generator)
    lengths = [9, 4, 1]
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]
    advantages, returns = generalised_advantages(
        rewards, values, mask, discount=discount, gae_lambda=gae_lambda
    )
    for row, length in enumerate(lengths):
        expected = by_definition(rewards[row], values[row], length, discount, gae_lambda)
        assert advantages[row, :length].tolist() == pytest.approx(expected, abs=1e-5)
        assert advantages[row, length:].tolist() == [0.0] * (9 - length)
    torch.testing.assert_close(returns[mask], (advantages + values)[mask])


def test_what_stands_in_padding_does_not_matter():
    rewards, values = torch.ones(1, 4), torch.ones(1, 4)
    mask = torch.tensor([[True, True, False, False]])
    spoiled = values.masked_fill(~mask, float("nan"))
    clean = generalised_advantages(rewards, values, mask, discount=1.0, gae_lambda=0.95)
    dirty = generalised_advantages(rewards, spoiled, mask, discount=1.0, gae_lambda=0.95)
    assert torch.equal(clean[0], dirty[0])
    assert torch.equal(clean[1], dirty[1])


def test_whitened_values_have_mean_0_and_deviation_1_over_the_mask():
    values = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)) * 5 + 3
    mask = torch.arange(8) < torch.tensor([8, 3, 5, 1])[:, None]
    white = whiten(values.masked_fill(~mask, float("inf")), mask)
    assert float(white[mask].mean()) == pytest.approx(0.0, abs=1e-6)
    assert float(white[mask].std()) == pytest.approx(1.0, abs=1e-5)
    assert bool((white[~mask] == 0).all())


@pytest.mark.parametrize("values", [[[2.0]], [[3.0, 3.0]]])
def test_values_without_spread_become_0(values: list[list[float]]):
    tensor = torch.tensor(values)
    assert bool((whiten(tensor, torch.ones_like(tensor).bool()) == 0).all())
