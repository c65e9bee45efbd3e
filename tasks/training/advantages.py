"""Generalised advantage estimation."""

from __future__ import annotations

import torch
from torch import Tensor


def generalised_advantages(
    rewards_BR: Tensor, values_BR: Tensor, mask_BR: Tensor, *, discount: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Advantages and returns, advantages_BR and returns_BR, both 0 outside the mask.

    A_t = Σ_l (γλ)^l δ_{t+l} with δ_t = r_t + γ V_{t+1} − V_t (Schulman et al. 2016, High-Dimensional
    Continuous Control Using Generalized Advantage Estimation, equation 16); the return is A_t + V_t. The mask
    of a row is True on a prefix of it: after the last True the episode has ended and is worth 0.
    """
    values_BR = values_BR.masked_fill(~mask_BR, 0.0)
    rewards_BR = rewards_BR.masked_fill(~mask_BR, 0.0)
    advantages_BR = torch.zeros_like(values_BR)
    next_value_B = torch.zeros_like(values_BR[:, 0])
    next_advantage_B = torch.zeros_like(values_BR[:, 0])
    for t in reversed(range(values_BR.shape[1])):
        delta_B = rewards_BR[:, t] + discount * next_value_B - values_BR[:, t]
        next_advantage_B = (delta_B + discount * gae_lambda * next_advantage_B) * mask_BR[:, t]
        advantages_BR[:, t] = next_advantage_B
        next_value_B = values_BR[:, t]
    return advantages_BR, advantages_BR + values_BR
