"""How far a policy has moved from its reference: estimators of KL(policy ‖ reference)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

KlEstimator = Literal["k1", "k2", "k3"]


def kl_estimate(log_probs: Tensor, reference_log_probs: Tensor, estimator: KlEstimator) -> Tensor:
    """An estimate for each sampled token, in nats, from its log-probability under both; shapes are kept.

    With x = log p − log q of a token sampled from p (Schulman 2020, Approximating KL Divergence):
    k1 = x, unbiased, may be negative; k2 = x² / 2, biased, low variance, never negative;
    k3 = exp(−x) − 1 + x, unbiased, never negative.
    """
    difference = log_probs - reference_log_probs
    if estimator == "k1":
        return difference
    if estimator == "k2":
        return 0.5 * difference.square()
    return torch.expm1(-difference) + difference


def kl_exact(logits_BRV: Tensor, reference_logits_BRV: Tensor) -> Tensor:
    """kl_BR in nats, summed over the whole vocabulary at each position: no sampling noise but the path's."""
    log_probs_BRV = logits_BRV.log_softmax(-1)
    difference_BRV = log_probs_BRV - reference_logits_BRV.log_softmax(-1)
    return (log_probs_BRV.exp() * difference_BRV).sum(-1)
