from __future__ import annotations

from pathlib import Path

import pytest
import torch

from models.heads import RewardModel, ValueModel
from models.hub import load_model
from models.transformer import CausalLM
from tasks.training.chat import ChatTokenizer, Message
from tasks.training.rollout import (
    Responses,
    Sampling,
    respond,
    response_log_probs,
    response_logits,
    response_values,
)

SAMPLING = Sampling(max_new_tokens=12, temperature=0.7)


@pytest.fixture
def policy(tiny_base: Path, chat: ChatTokenizer) -> CausalLM:
    """One that ends its responses now and then."""
    model = load_model(tiny_base)
    with torch.no_grad():
        model.lm_head.weight[chat.eos_id].normal_(0.0, 0.5, generator=torch.Generator().manual_seed(0))
    return model


@pytest.fixture
def prompts(chat: ChatTokenizer) -> list[list[int]]:
    texts = ["Hallo", "What is the capital of Sweden?", "How are you today, and you?", "x"]
    return [chat.prompt([Message(role="user", content=text)]) for text in texts]


@pytest.fixture
def reward(policy: CausalLM) -> RewardModel:
    return RewardModel.from_trunk(policy.model, 1)


@pytest.fixture
def responses(policy, reward, chat: ChatTokenizer, prompts) -> Responses:
    return respond(policy, reward, chat, prompts, SAMPLING, torch.Generator().manual_seed(4))


def unpadded(responses: Responses) -> list[tuple[list[int], list[int]]]:
    """Each row's prompt and response."""
    rows = []
    length = responses.mask_BR.shape[1]
    for tokens, padding, mask in zip(
        responses.tokens_BT, responses.padding_BT, responses.mask_BR, strict=True
    ):
        prompt = tokens[:-length][~padding[:-length]]
        rows.append((prompt.tolist(), tokens[-length:][mask].tolist()))
    return rows


def test_some_responses_end_and_some_do_not(responses: Responses):
    assert 0 < int(responses.ended_B.sum()) < 4


def test_padded_log_probs_are_those_of_the_row_alone(policy, responses: Responses):
    padded = response_log_probs(policy, responses, SAMPLING)
    for row, (prompt, response) in enumerate(unpadded(responses)):
        logits = policy(torch.tensor([prompt + response]))[0] / SAMPLING.temperature
        expected = torch.distributions.Categorical(logits=logits[len(prompt) - 1 : -1]).log_prob(
            torch.tensor(response)
        )
        torch.testing.assert_close(padded[row, : len(response)], expected, atol=1e-5, rtol=1e-4)


def test_padded_values_are_those_of_the_row_alone(policy, responses: Responses):
    model = ValueModel.from_trunk(policy.model, 2)
    torch.nn.init.normal_(model.value.weight)
    padded = response_values(model, responses, SAMPLING)
    for row, (prompt, response) in enumerate(unpadded(responses)):
        expected = model(torch.tensor([prompt + response]))[0, len(prompt) - 1 : -1]
        torch.testing.assert_close(padded[row, : len(response)], expected, atol=1e-4, rtol=1e-4)


def test_a_score_is_read_at_the_end_which_is_added_where_it_is_missing(reward, chat, responses: Responses):
    for row, (prompt, response) in enumerate(unpadded(responses)):
        assert (response[-1] == chat.eos_id) == bool(responses.ended_B[row])
        whole = prompt + response + ([] if responses.ended_B[row] else [chat.eos_id])
        expected = reward(torch.tensor([whole]), torch.tensor([len(whole) - 1]))
        torch.testing.assert_close(responses.scores_B[row], expected[0], atol=1e-5, rtol=1e-4)


def test_the_same_generator_draws_the_same_responses(policy, reward, chat, prompts, responses: Responses):
    again = respond(policy, reward, chat, prompts, SAMPLING, torch.Generator().manual_seed(4))
    assert torch.equal(again.tokens_BT, responses.tokens_BT)
    other = respond(policy, reward, chat, prompts, SAMPLING, torch.Generator().manual_seed(5))
    assert unpadded(other) != unpadded(responses)


def test_logits_are_divided_by_the_temperature(policy, responses: Responses):
    hot = response_logits(policy, responses, Sampling(12, temperature=1.0))
    torch.testing.assert_close(response_logits(policy, responses, SAMPLING) * 0.7, hot, atol=1e-5, rtol=1e-4)
