from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tasks.training.policy_losses import clipped_policy_loss, clipped_value_loss, entropy, token_log_probs

MASK = torch.tensor([[True, True, True, False], [True, False, False, False]])


def policy_gradient(ratio: float, advantage: float) -> tuple[float, float]:
    """Loss and gradient of one token whose probability changed by ``ratio``."""
    log_probs = torch.tensor([[ratio]]).log().requires_grad_()
    loss, _ = clipped_policy_loss(
        log_probs,
        torch.zeros(1, 1),
        torch.tensor([[advantage]]),
        torch.ones(1, 1).bool(),
        clip_range=0.2,
        tokens=1,
    )
    (gradient,) = torch.autograd.grad(loss, log_probs)
    return float(loss.detach()), float(gradient)


def test_before_the_first_step_the_loss_is_the_negated_mean_advantage():
    log_probs = torch.randn(2, 4)
    advantages = torch.randn(2, 4)
    loss, clipped = clipped_policy_loss(log_probs, log_probs, advantages, MASK, clip_range=0.2, tokens=4)
    assert float(loss) == pytest.approx(-float(advantages[MASK].mean()), abs=1e-6)
    assert int(clipped) == 0


def test_a_gain_beyond_the_clip_range_has_no_gradient():
    assert policy_gradient(1.5, 1.0) == (pytest.approx(-1.2), 0.0)
    assert policy_gradient(0.5, -1.0) == (pytest.approx(0.8), 0.0)


def test_a_loss_beyond_the_clip_range_keeps_its_gradient():
    assert policy_gradient(1.5, -1.0) == (pytest.approx(1.5), pytest.approx(1.5))
    assert policy_gradient(0.5, 1.0) == (pytest.approx(-0.5), pytest.approx(-0.5))


def test_clipped_tokens_are_counted_in_the_mask_only():
    log_probs = torch.ones(2, 4)
    _, clipped = clipped_policy_loss(
        log_probs, torch.zeros(2, 4), torch.ones(2, 4), MASK, clip_range=0.2, tokens=4
    )
    assert int(clipped) == 4


@pytest.mark.parametrize("outside", [0.0, 1e9, float("inf"), float("nan")])
def test_no_gradient_of_the_policy_loss_comes_from_outside_the_mask(outside: float):
    log_probs = (0.1 * torch.randn(2, 4)).requires_grad_()
    old = (0.1 * torch.randn(2, 4)).masked_fill(~MASK, outside)
    loss, _ = clipped_policy_loss(log_probs, old, torch.ones(2, 4), MASK, clip_range=0.9, tokens=4)
    (gradient,) = torch.autograd.grad(loss, log_probs)
    assert bool((gradient[~MASK] == 0).all())
    assert bool(torch.isfinite(gradient).all())
    assert bool((gradient[MASK] != 0).any())


def value_loss(new: float, old: float, target: float) -> tuple[float, float]:
    values = torch.tensor([[new]]).requires_grad_()
    loss = clipped_value_loss(
        values,
        torch.tensor([[old]]),
        torch.tensor([[target]]),
        torch.ones(1, 1).bool(),
        clip_range=0.2,
        tokens=1,
    )
    (gradient,) = torch.autograd.grad(loss, values)
    return float(loss.detach()), float(gradient)


def test_a_value_near_the_old_one_has_the_squared_error():
    assert value_loss(0.1, 0.0, 1.0) == (pytest.approx(0.5 * 0.81), pytest.approx(-0.9))


def test_a_value_that_ran_ahead_to_its_target_is_held():
    assert value_loss(0.9, 0.0, 1.0) == (pytest.approx(0.5 * 0.64), 0.0)


def test_a_value_that_ran_away_from_its_target_is_called_back():
    assert value_loss(-0.9, 0.0, 1.0) == (pytest.approx(0.5 * 1.9**2), pytest.approx(-1.9))


def test_no_gradient_of_the_value_loss_comes_from_outside_the_mask():
    values = torch.randn(2, 4).requires_grad_()
    returns = torch.ones(2, 4).masked_fill(~MASK, 1e9)
    loss = clipped_value_loss(values, torch.zeros(2, 4), returns, MASK, clip_range=9.0, tokens=4)
    (gradient,) = torch.autograd.grad(loss, values)
    assert bool((gradient[~MASK] == 0).all())
    torch.testing.assert_close(gradient[MASK], (values.detach() - 1)[MASK] / 4)


def test_entropy_is_that_of_torch_distributions():
    logits = torch.randn(2, 3, 7)
    torch.testing.assert_close(entropy(logits), torch.distributions.Categorical(logits=logits).entropy())


def test_log_probs_are_those_of_torch_distributions():
    logits: Tensor = torch.randn(2, 3, 7)
    tokens = torch.randint(7, (2, 3))
    expected = torch.distributions.Categorical(logits=logits).log_prob(tokens)
    torch.testing.assert_close(token_log_probs(logits, tokens), expected)
