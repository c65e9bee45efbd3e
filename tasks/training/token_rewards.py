"""From one score per response to one reward per token."""

from __future__ import annotations

import torch
from torch import Tensor


def token_rewards(scores_B: Tensor, kl_BR: Tensor, mask_BR: Tensor, *, coefficient: float) -> Tensor:
    """rewards_BR: −coefficient · KL at every response token, plus the score at the last one; elsewhere 0.

    (Ziegler et al. 2019, equation 2; Stiennon et al. 2020, section 3.4.) Every row of the mask has at least
    one True, and is True on a prefix.
    """
    rewards_BR = (-coefficient * kl_BR).masked_fill(~mask_BR, 0.0)
    last_B1 = mask_BR.sum(1, keepdim=True) - 1
    return rewards_BR.scatter_add(1, last_B1, scores_B.unsqueeze(1).to(rewards_BR.dtype))


def response_scores(scores_B: Tensor, ended_B: Tensor, *, missing_eos_penalty: float) -> Tensor:
    """The reward model's scores_B, less a penalty for each response that did not reach its end."""
    return torch.where(ended_B, scores_B, scores_B - missing_eos_penalty)
