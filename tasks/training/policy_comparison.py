"""Two policies on the same prompts: what each is rewarded with, and how far one has moved from the other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from models.transformer import CausalLM
from tasks.stage import StageReport
from tasks.training.chat import ChatTokenizer
from tasks.training.divergence import kl_exact
from tasks.training.masked import masked_sum
from tasks.training.rollout import Responses, Sampling, Scorer, respond, response_logits
from tasks.training.token_rewards import response_scores


class PolicyMeasures(StageReport):
    """Means over the responses of one policy."""

    reward: float
    """The score less the penalty for a missing end: what is optimised."""
    score: float
    """The reward model's alone."""
    response_tokens: float
    eos_rate: float


class Comparison(StageReport):
    """The tuned and the aligned model. The divergence is that of the aligned model's responses, in nats."""

    tuned: PolicyMeasures
    aligned: PolicyMeasures
    win_rate: float
    """Share of prompts on which the aligned model's reward is the higher one; a tie is half."""
    kl_per_token: float
    kl_per_response: float


@torch.no_grad()
def compare_policies(
    tuned: CausalLM,
    aligned: CausalLM,
    reward: Scorer,
    chat: ChatTokenizer,
    prompts: Sequence[list[int]],
    sampling: Sampling,
    *,
    missing_eos_penalty: float,
    batch: int,
    seed: int,
) -> Comparison:
    """Draw one response of each policy to each prompt, both with the same seed, and compare them.

    KL(aligned ‖ tuned) is summed over the vocabulary at every token of the aligned model's responses.
    """
    before = [
        _draw(tuned, reward, chat, prompts, sampling, first, batch, seed) for first in _firsts(prompts, batch)
    ]
    after = [
        _draw(aligned, reward, chat, prompts, sampling, first, batch, seed)
        for first in _firsts(prompts, batch)
    ]
    kl_sum, tokens = 0.0, 0
    for responses in after:
        kl_BR = kl_exact(
            response_logits(aligned, responses, sampling), response_logits(tuned, responses, sampling)
        )
        kl_sum += float(masked_sum(kl_BR, responses.mask_BR))
        tokens += int(responses.mask_BR.sum())
    tuned_rewards_N = _rewards(before, missing_eos_penalty)
    aligned_rewards_N = _rewards(after, missing_eos_penalty)
    won = (aligned_rewards_N > tuned_rewards_N).float() + 0.5 * (aligned_rewards_N == tuned_rewards_N).float()
    return Comparison(
        tuned=_measures(before, tuned_rewards_N),
        aligned=_measures(after, aligned_rewards_N),
        win_rate=float(won.mean()),
        kl_per_token=kl_sum / tokens,
        kl_per_response=kl_sum / len(prompts),
    )


def _firsts(prompts: Sequence[list[int]], batch: int) -> range:
    return range(0, len(prompts), batch)


def _draw(
    policy: CausalLM,
    reward: Scorer,
    chat: ChatTokenizer,
    prompts: Sequence[list[int]],
    sampling: Sampling,
    first: int,
    batch: int,
    seed: int,
) -> Responses:
    generator = torch.Generator(policy.lm_head.weight.device).manual_seed(seed + first)
    return respond(policy, reward, chat, prompts[first : first + batch], sampling, generator)


def _rewards(drawn: Sequence[Responses], missing_eos_penalty: float) -> Tensor:
    return torch.cat(
        [response_scores(r.scores_B, r.ended_B, missing_eos_penalty=missing_eos_penalty) for r in drawn]
    )


def _measures(drawn: Sequence[Responses], rewards_N: Tensor) -> PolicyMeasures:
    return PolicyMeasures(
        reward=float(rewards_N.mean()),
        score=float(torch.cat([r.scores_B for r in drawn]).mean()),
        response_tokens=float(torch.cat([r.mask_BR.sum(1) for r in drawn]).float().mean()),
        eos_rate=float(torch.cat([r.ended_B for r in drawn]).float().mean()),
    )
