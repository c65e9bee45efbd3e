"""The losses of proximal policy optimisation, each a function of tensors and the mask of response tokens.

B responses of R tokens. Every loss is a sum over tokens divided by ``tokens``, the number of response tokens
of the whole minibatch: a minibatch may be split into micro-batches without a change of its gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tasks.training.masked import masked_sum


def clipped_policy_loss(
    log_probs_BR: Tensor,
    old_log_probs_BR: Tensor,
    advantages_BR: Tensor,
    mask_BR: Tensor,
    *,
    clip_range: float,
    tokens: int,
) -> tuple[Tensor, Tensor]:
    """The negated clipped surrogate (Schulman et al. 2017, PPO, equation 7), and how many tokens it clips.

    A token counts as clipped where the clipped term is the smaller one: it then has no gradient.
    """
    # Padding may hold anything; exp of it could overflow, and infinity times 0 is NaN in the gradient.
    difference_BR = (log_probs_BR - old_log_probs_BR).masked_fill(~mask_BR, 0.0)
    ratio_BR = difference_BR.exp()
    surrogate_BR = ratio_BR * advantages_BR
    clipped_BR = ratio_BR.clamp(1 - clip_range, 1 + clip_range) * advantages_BR
    loss = -masked_sum(torch.minimum(surrogate_BR, clipped_BR), mask_BR) / tokens
    return loss, ((clipped_BR < surrogate_BR) & mask_BR).sum()


def clipped_value_loss(
    values_BR: Tensor,
    old_values_BR: Tensor,
    returns_BR: Tensor,
    mask_BR: Tensor,
    *,
    clip_range: float,
    tokens: int,
) -> Tensor:
    """Half the squared error, the larger one of the new value and of it clipped around the old one.

    As in the code of Schulman et al. 2017 (Engstrom et al. 2020, Implementation Matters, section 3).
    """
    near_BR = old_values_BR + (values_BR - old_values_BR).clamp(-clip_range, clip_range)
    error_BR = torch.maximum((values_BR - returns_BR).square(), (near_BR - returns_BR).square())
    return 0.5 * masked_sum(error_BR, mask_BR) / tokens


def entropy(logits_BRV: Tensor) -> Tensor:
    """entropy_BR in nats of the distribution over V tokens at each position."""
    log_probs_BRV = logits_BRV.log_softmax(-1)
    return -(log_probs_BRV.exp() * log_probs_BRV).sum(-1)


def token_log_probs(logits_BRV: Tensor, tokens_BR: Tensor) -> Tensor:
    """log_probs_BR, the log-probability of each token under the logits of its position."""
    return logits_BRV.log_softmax(-1).gather(-1, tokens_BR.unsqueeze(-1)).squeeze(-1)
