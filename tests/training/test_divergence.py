from __future__ import annotations

import pytest
import torch

from tasks.training.divergence import KlEstimator, kl_estimate, kl_exact


@pytest.fixture
def distributions() -> tuple[torch.Tensor, torch.Tensor, float]:
    """Logits of p and q over 6 tokens, and KL(p ‖ q) by torch.distributions."""
    generator = torch.Generator().manual_seed(3)
    p, q = torch.randn(6, generator=generator), torch.randn(6, generator=generator)
    expected = torch.distributions.kl_divergence(
        torch.distributions.Categorical(logits=p), torch.distributions.Categorical(logits=q)
    )
    return p, q, float(expected)


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_the_expectation_of_k1_and_k3_is_the_divergence(distributions, estimator: KlEstimator):
    p, q, expected = distributions
    estimates = kl_estimate(p.log_softmax(-1), q.log_softmax(-1), estimator)
    assert float((p.softmax(-1) * estimates).sum()) == pytest.approx(expected, rel=1e-5)


def test_k2_is_the_divergence_for_near_distributions_only(distributions):
    p, q, far = distributions
    near = p + 0.01 * q
    exact = float(kl_exact(p[None, None], near[None, None]))
    k2 = float((p.softmax(-1) * kl_estimate(p.log_softmax(-1), near.log_softmax(-1), "k2")).sum())
    assert k2 == pytest.approx(exact, rel=0.02)
    k2_far = float((p.softmax(-1) * kl_estimate(p.log_softmax(-1), q.log_softmax(-1), "k2")).sum())
    assert k2_far != pytest.approx(far, rel=0.02)


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_k2_and_k3_are_never_negative(estimator: KlEstimator):
    log_ratios = torch.linspace(-3, 3, 60)
    assert bool((kl_estimate(log_ratios, torch.zeros(60), estimator) > 0).all())


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_equal_policies_have_divergence_0(estimator: KlEstimator):
    log_probs = torch.randn(4)
    assert bool((kl_estimate(log_probs, log_probs, estimator) == 0).all())


def test_the_exact_divergence_is_that_of_torch_distributions(distributions):
    p, q, expected = distributions
    assert float(kl_exact(p[None, None], q[None, None])) == pytest.approx(expected, rel=1e-5)
