"""One update of proximal policy optimisation: draw responses, weigh them, learn from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from pydantic import Field
from torch import Tensor, nn

from models.heads import ValueModel
from models.transformer import CausalLM
from tasks.parameters import StageParams
from tasks.stage import StageError
from tasks.training.advantages import generalised_advantages
from tasks.training.chat import ChatTokenizer
from tasks.training.divergence import KlEstimator, kl_estimate
from tasks.training.kl_control import FixedKl, KlControl, next_coefficient
from tasks.training.masked import masked_mean, masked_sum, whiten
from tasks.training.optimizer import OptimizerParams
from tasks.training.order import batch_at, seed_of
from tasks.training.policy_losses import clipped_policy_loss, clipped_value_loss, entropy, token_log_probs
from tasks.training.precision import Precision
from tasks.training.rollout import (
    Responses,
    Sampling,
    Scorer,
    respond,
    response_log_probs,
    response_logits,
    response_values,
)
from tasks.training.token_rewards import response_scores, token_rewards

ROLLOUT, MINIBATCHES, COMPARISON, VALUE_HEAD = range(4)
"""Streams of random numbers under the run's seed."""


class PpoOptimizerParams(OptimizerParams):
    """AdamW with the small steps that a policy takes."""

    learning_rate: float = Field(default=1e-4, gt=0, description="constant")
    weight_decay: float = Field(default=0.0, ge=0, description="on matrices only")


class PpoParams(StageParams):
    """Parameters of `ppo`."""

    seed: int = Field(0, ge=0)
    precision: Precision = "auto"
    updates: int = Field(16, ge=1, description="how often responses are drawn and learnt from")
    prompts: int = Field(32, ge=2, description="prompts of an update, one response to each")
    epochs: int = Field(4, ge=1, description="passes over the responses of an update")
    minibatches: int = Field(2, ge=1, description="optimizer steps of an epoch")
    max_prompt_tokens: int = Field(64, ge=4, description="of a longer prompt the end is kept")
    max_new_tokens: int = Field(64, ge=1)
    temperature: float = Field(1.0, gt=0, description="also that of the probabilities that are compared")
    discount: float = Field(1.0, gt=0, le=1)
    gae_lambda: float = Field(0.95, ge=0, le=1)
    clip_range: float = Field(0.2, gt=0, lt=1)
    value_clip_range: float = Field(0.2, gt=0)
    vf_coef: float = Field(0.1, ge=0, description="weight of the value loss")
    entropy_coef: float = Field(0.01, ge=0, description="weight of the entropy of the policy")
    kl: KlControl = FixedKl()
    kl_estimator: KlEstimator = "k1"
    missing_eos_penalty: float = Field(
        1.0, ge=0, description="taken from the score of a response without end"
    )
    optimizer: PpoOptimizerParams = PpoOptimizerParams()
    held_out_prompts: int = Field(128, ge=2, description="prompts for the comparison in the report")
    max_broken: float = Field(
        0.01, ge=0, le=1, description="share of broken rows above which the stage stops"
    )
    checkpoint_every: int = Field(1000, ge=1, description="updates between checkpoints")
    keep_checkpoints: int = Field(2, ge=1)


@dataclass
class PpoState:
    """What changes from update to update."""

    policy: CausalLM
    value: ValueModel
    optimizer: torch.optim.Optimizer
    kl_coefficient: float
    update: int
    history: list[dict[str, float]]


@dataclass(frozen=True)
class Experience:
    """B responses and what was true of their R tokens when they were drawn; nothing here has a gradient."""

    responses: Responses
    log_probs_BR: Tensor
    values_BR: Tensor
    advantages_BR: Tensor
    returns_BR: Tensor

    def rows(self, index_b: Tensor) -> Experience:
        """Some of the rows."""
        return Experience(
            self.responses.rows(index_b),
            self.log_probs_BR[index_b],
            self.values_BR[index_b],
            self.advantages_BR[index_b],
            self.returns_BR[index_b],
        )


def ppo_update(
    state: PpoState,
    reference: CausalLM,
    reward: Scorer,
    chat: ChatTokenizer,
    prompts: Sequence[list[int]],
    params: PpoParams,
    sampling: Sampling,
) -> dict[str, float]:
    """Draw responses, learn from them, and tell how it went; a pure function of the state and the seed."""
    update = state.update + 1
    chosen = batch_at(update - 1, rows=len(prompts), batch=params.prompts, seed=params.seed)
    generator = torch.Generator(state.policy.lm_head.weight.device).manual_seed(
        seed_of(params.seed, ROLLOUT, update)
    )
    drawn = [prompts[i] for i in chosen]
    responses = respond(state.policy, reward, chat, drawn, sampling, generator)
    experience, measured = gather_experience(state, reference, responses, params, sampling)
    learnt = _learn(state, experience, params, sampling, update)
    state.update = update
    state.kl_coefficient = next_coefficient(
        params.kl, state.kl_coefficient, measured["kl_per_response"], params.prompts
    )
    return measured | learnt


@torch.no_grad()
def gather_experience(
    state: PpoState, reference: CausalLM, responses: Responses, params: PpoParams, sampling: Sampling
) -> tuple[Experience, dict[str, float]]:
    """What the responses were worth, and measurements of them as means."""
    mask_BR = responses.mask_BR
    log_probs_BR = response_log_probs(state.policy, responses, sampling)
    reference_log_probs_BR = response_log_probs(reference, responses, sampling)
    values_BR = response_values(state.value, responses, sampling)
    kl_BR = kl_estimate(log_probs_BR, reference_log_probs_BR, params.kl_estimator)
    scores_B = response_scores(
        responses.scores_B, responses.ended_B, missing_eos_penalty=params.missing_eos_penalty
    )
    rewards_BR = token_rewards(scores_B, kl_BR, mask_BR, coefficient=state.kl_coefficient)
    advantages_BR, returns_BR = generalised_advantages(
        rewards_BR, values_BR, mask_BR, discount=params.discount, gae_lambda=params.gae_lambda
    )
    measured = {
        "reward": float(scores_B.mean()),
        "score": float(responses.scores_B.mean()),
        "kl_per_token": float(masked_mean(kl_BR, mask_BR)),
        "kl_per_response": float(masked_sum(kl_BR, mask_BR)) / len(scores_B),
        "kl_coefficient": state.kl_coefficient,
        "response_tokens": float(mask_BR.sum(1).float().mean()),
        "eos_rate": float(responses.ended_B.float().mean()),
    }
    return Experience(
        responses, log_probs_BR, values_BR, whiten(advantages_BR, mask_BR), returns_BR
    ), measured


def _learn(
    state: PpoState, experience: Experience, params: PpoParams, sampling: Sampling, update: int
) -> dict[str, float]:
    """Several epochs of optimizer steps over the responses of one update; means over all of them."""
    rows = len(experience.log_probs_BR)
    generator = torch.Generator().manual_seed(seed_of(params.seed, MINIBATCHES, update))
    sums: dict[str, float] = {}
    steps = 0
    for _ in range(params.epochs):
        for index_b in torch.randperm(rows, generator=generator).chunk(params.minibatches):
            loss, measured = minibatch_loss(
                state.policy, state.value, experience.rows(index_b), params, sampling
            )
            measured["gradient_norm"] = _step(state, loss, params.optimizer.clip_norm, update)
            steps += 1
            for name, value in measured.items():
                sums[name] = sums.get(name, 0.0) + value
    return {name: value / steps for name, value in sums.items()}


def minibatch_loss(
    policy: CausalLM, value: ValueModel, experience: Experience, params: PpoParams, sampling: Sampling
) -> tuple[Tensor, dict[str, float]]:
    """The loss of a minibatch, policy + vf_coef · value − entropy_coef · entropy, and its parts."""
    responses = experience.responses
    mask_BR, tokens = responses.mask_BR, int(responses.mask_BR.sum())
    logits_BRV = response_logits(policy, responses, sampling)
    policy_loss, clipped = clipped_policy_loss(
        token_log_probs(logits_BRV, responses.responses_BR),
        experience.log_probs_BR,
        experience.advantages_BR,
        mask_BR,
        clip_range=params.clip_range,
        tokens=tokens,
    )
    value_loss = clipped_value_loss(
        response_values(value, responses, sampling),
        experience.values_BR,
        experience.returns_BR,
        mask_BR,
        clip_range=params.value_clip_range,
        tokens=tokens,
    )
    mean_entropy = masked_mean(entropy(logits_BRV), mask_BR)
    loss = policy_loss + params.vf_coef * value_loss - params.entropy_coef * mean_entropy
    return loss, {
        "policy_loss": float(policy_loss.detach()),
        "value_loss": float(value_loss.detach()),
        "entropy": float(mean_entropy.detach()),
        "clip_share": float(clipped) / tokens,
    }


def _step(state: PpoState, loss: Tensor, clip_norm: float, update: int) -> float:
    """One optimizer step; returns the norm of the gradient before it was clipped.

    Raises:
        StageError: if the loss or the gradient is not finite; no weight has changed then.
    """
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()
    parameters = [parameter for group in state.optimizer.param_groups for parameter in group["params"]]
    norm = float(nn.utils.clip_grad_norm_(parameters, clip_norm))
    if not math.isfinite(float(loss.detach())) or not math.isfinite(norm):
        raise StageError(
            f"update {update}: the loss is {float(loss.detach())} and the gradient norm {norm}; no weight "
            "has changed. A smaller ppo.optimizer.learning_rate or a larger ppo.kl.coefficient often helps."
        )
    state.optimizer.step()
    return norm
