"""Responses of models to prompts, their scores by the reward model, and how far a policy moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from tasks.training.divergence import kl_exact
from tasks.training.rows_of_tokens import last_positions, pad_right

if TYPE_CHECKING:
    from models.heads import RewardModel
    from models.transformer import CausalLM


@dataclass(frozen=True)
class Sampling:
    """How a model continues prompts. ``group`` prompts share one stream of random numbers."""

    max_new_tokens: int
    temperature: float
    top_p: float
    seed: int
    group: int


@dataclass(frozen=True)
class Response:
    """A prompt and its continuation; ``ended`` if the model ended it itself, with EOS as its last token."""

    prompt: list[int]
    tokens: list[int]
    ended: bool


def respond(
    model: CausalLM,
    prompts: Sequence[list[int]],
    sampling: Sampling,
    *,
    eos_id: int,
    pad_id: int,
    cast: torch.dtype | None = None,
) -> list[Response]:
    """One response to each prompt, in their order.

    Group g of prompts is drawn with the seed (seed, g): two models given the same prompts meet the same
    random numbers, and a longer list of prompts leaves the earlier groups as they are.
    """
    from models.generation import generate

    device = model.lm_head.weight.device
    responses: list[Response] = []
    for number, first in enumerate(range(0, len(prompts), sampling.group)):
        group = list(prompts[first : first + sampling.group])
        entropy = np.random.SeedSequence((sampling.seed, number)).generate_state(1, np.uint64)[0]
        generation = generate(
            model,
            group,
            max_new_tokens=sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            generator=torch.Generator(device).manual_seed(int(entropy >> np.uint64(1))),
            eos_id=eos_id,
            pad_id=pad_id,
            cast=cast,
        )
        rows = generation.tokens_BT[:, generation.prompt_length :].tolist()
        lengths = generation.response_mask_BR.sum(1).tolist()
        for prompt, row, length in zip(group, rows, lengths, strict=True):
            tokens = row[:length]
            responses.append(Response(prompt, tokens, ended=bool(tokens) and tokens[-1] == eos_id))
    return responses


@torch.inference_mode()
def score(
    model: RewardModel,
    responses: Sequence[Response],
    *,
    batch_size: int,
    eos_id: int,
    pad_id: int,
    cast: torch.dtype | None = None,
) -> np.ndarray:
    """rewards_N, fp64: the reward model's score of prompt and response, read at EOS.

    A response that did not end is scored as if it ended where it was cut, as in training.
    """
    rewards = [np.empty(0)]
    device = model.score.weight.device
    for first in range(0, len(responses), batch_size):
        rows = [
            response.prompt + response.tokens + ([] if response.ended else [eos_id])
            for response in responses[first : first + batch_size]
        ]
        last_B = last_positions(rows).to(device)
        with torch.autocast(device.type, dtype=cast, enabled=cast is not None):
            rewards.append(model(pad_right(rows, pad_id).to(device), last_B).double().cpu().numpy())
    return np.concatenate(rewards)


@torch.inference_mode()
def divergences(
    policy: CausalLM,
    reference: CausalLM,
    responses: Sequence[Response],
    *,
    batch_size: int,
    pad_id: int,
    cast: torch.dtype | None = None,
) -> np.ndarray:
    """KL(policy ‖ reference) of each response in nats, kl_N: the exact divergence of the next token, summed.

    Over responses that the policy sampled at temperature 1 and top-p 1, the mean is an unbiased estimate of
    the divergence between the models' distributions over responses, of lower variance than the sampled
    log-ratio (Rao and Blackwell: the expectation over the next token is taken exactly).
    """
    totals = [np.empty(0)]
    device = policy.lm_head.weight.device
    for first in range(0, len(responses), batch_size):
        rows = responses[first : first + batch_size]
        whole = [response.prompt + response.tokens for response in rows]
        tokens_BT = pad_right(whole, pad_id).to(device)
        predicts_BT = torch.zeros(tokens_BT.shape, dtype=torch.bool, device=device)
        for row, response in enumerate(rows):
            begin = len(response.prompt) - 1
            predicts_BT[row, begin : begin + len(response.tokens)] = True
        with torch.autocast(device.type, dtype=cast, enabled=cast is not None):
            logits_SV = policy.lm_head(policy.hidden(tokens_BT)[predicts_BT])
            reference_logits_SV = reference.lm_head(reference.hidden(tokens_BT)[predicts_BT])
        kl_BT = torch.zeros(tokens_BT.shape, dtype=torch.float64, device=device)
        kl_BT[predicts_BT] = kl_exact(logits_SV.float(), reference_logits_SV.float()).double()
        totals.append(kl_BT.sum(1).cpu().numpy())
    return np.concatenate(totals)
