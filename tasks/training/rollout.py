"""Responses of a policy to prompts, with everything that an update needs to know about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from models.generation import Generation, generate
from models.heads import ValueModel
from models.transformer import CausalLM
from tasks.training.chat import ChatTokenizer
from tasks.training.policy_losses import token_log_probs
from tasks.training.rows_of_tokens import last_positions, pad_right

Scorer = Callable[[Tensor, Tensor], Tensor]
"""(tokens_BT padded on the right, last_B) to reward_B: a `models.heads.RewardModel`."""


@dataclass(frozen=True)
class Sampling:
    """How responses are drawn. All probabilities are those of the logits divided by the temperature."""

    max_new_tokens: int
    temperature: float
    cast: torch.dtype | None = None


@dataclass(frozen=True)
class Responses:
    """B prompts of at most P tokens, padded on the left, each with a response of at most R tokens; T = P + R.

    tokens_BT, padding_BT (True on padding of both sides), mask_BR (True on response tokens, EOS included),
    scores_B (the reward model's), ended_B (True where the response has its EOS).
    """

    tokens_BT: Tensor
    padding_BT: Tensor
    mask_BR: Tensor
    scores_B: Tensor
    ended_B: Tensor

    @property
    def responses_BR(self) -> Tensor:
        """The tokens behind the prompts."""
        return self.tokens_BT[:, -self.mask_BR.shape[1] :]

    def rows(self, index_b: Tensor) -> Responses:
        """Some of the rows."""
        return Responses(
            self.tokens_BT[index_b],
            self.padding_BT[index_b],
            self.mask_BR[index_b],
            self.scores_B[index_b],
            self.ended_B[index_b],
        )


@torch.no_grad()
def respond(
    policy: CausalLM,
    reward: Scorer,
    chat: ChatTokenizer,
    prompts: Sequence[list[int]],
    sampling: Sampling,
    generator: torch.Generator,
) -> Responses:
    """Draw one response to each prompt and score it.

    A response that did not end within ``max_new_tokens`` is scored as if it ended there.

    Raises:
        ValueError: if a prompt and its response can be longer than the model's positions.
    """
    drawn = generate(
        policy,
        list(prompts),
        max_new_tokens=sampling.max_new_tokens,
        temperature=sampling.temperature,
        generator=generator,
        eos_id=chat.eos_id,
        pad_id=chat.pad_id,
        cast=sampling.cast,
    )
    ended_B = ((drawn.responses_BR == chat.eos_id) & drawn.response_mask_BR).any(1)
    rows = [
        prompt + response if response[-1] == chat.eos_id else [*prompt, *response, chat.eos_id]
        for prompt, response in zip(prompts, _unpadded(drawn), strict=True)
    ]
    device = drawn.tokens_BT.device
    with torch.autocast(device.type, dtype=sampling.cast, enabled=sampling.cast is not None):
        scores_B = reward(pad_right(rows, chat.pad_id).to(device), last_positions(rows).to(device))
    return Responses(drawn.tokens_BT, drawn.padding_BT, drawn.response_mask_BR, scores_B.float(), ended_B)


def response_logits(model: CausalLM, responses: Responses, sampling: Sampling) -> Tensor:
    """logits_BRV in fp32 from which each response token was drawn, divided by the temperature."""
    tokens_BT, padding_BT, length = _states(responses)
    with torch.autocast(tokens_BT.device.type, dtype=sampling.cast, enabled=sampling.cast is not None):
        hidden_BTC = model.hidden(tokens_BT, padding_BT=padding_BT)
        logits_BRV = model.lm_head(hidden_BTC[:, -length:])
    return logits_BRV.float() / sampling.temperature


def response_log_probs(model: CausalLM, responses: Responses, sampling: Sampling) -> Tensor:
    """log_probs_BR of the response tokens."""
    return token_log_probs(response_logits(model, responses, sampling), responses.responses_BR)


def response_values(model: ValueModel, responses: Responses, sampling: Sampling) -> Tensor:
    """values_BR: what the model expects in the state before each response token."""
    tokens_BT, padding_BT, length = _states(responses)
    with torch.autocast(tokens_BT.device.type, dtype=sampling.cast, enabled=sampling.cast is not None):
        return model(tokens_BT, padding_BT=padding_BT)[:, -length:]


def _states(responses: Responses) -> tuple[Tensor, Tensor, int]:
    """What stands before each token: all tokens but the last one."""
    return responses.tokens_BT[:, :-1], responses.padding_BT[:, :-1], responses.mask_BR.shape[1]


def _unpadded(drawn: Generation) -> list[list[int]]:
    lengths_B = drawn.response_mask_BR.sum(1).tolist()
    return [row[:length] for row, length in zip(drawn.responses_BR.tolist(), lengths_B, strict=True)]
