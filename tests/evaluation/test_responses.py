"""Responses, their rewards, and the divergence of a policy from its reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from models.hub import load_model, load_reward_model
from tasks.evaluation.responses import Response, Sampling, divergences, respond, score
from tasks.training.chat import ChatTokenizer, Message

SAMPLING = Sampling(max_new_tokens=8, temperature=1.0, top_p=1.0, seed=5, group=2)


@pytest.fixture
def chat(run) -> ChatTokenizer:
    return ChatTokenizer(run.tokens)


@pytest.fixture
def prompts(chat) -> list[list[int]]:
    questions = ("Who?", "What turns the wheel of the mill?", "Why is it cold?")
    return [chat.prompt([Message(role="user", content=text)]) for text in questions]


def test_the_same_seed_gives_the_same_responses_and_another_gives_others(base_model, chat, prompts):
    ends = {"eos_id": chat.eos_id, "pad_id": chat.pad_id}
    first = respond(base_model, prompts, SAMPLING, **ends)
    other = Sampling(**{**SAMPLING.__dict__, "seed": 6})
    assert first == respond(base_model, prompts, SAMPLING, **ends)
    assert first != respond(base_model, prompts, other, **ends)
    assert respond(base_model, prompts[:2], SAMPLING, **ends) == first[:2]


def test_a_response_says_whether_the_model_ended_it(base_model, chat, prompts):
    for eos_id in range(0, chat.vocab_size, 20):  # whatever the model says first, called the end, ends it
        (response,) = respond(base_model, prompts[:1], SAMPLING, eos_id=eos_id, pad_id=chat.pad_id)
        assert response.ended == (response.tokens[-1] == eos_id)
        assert eos_id not in response.tokens[:-1]
        assert response.ended or len(response.tokens) == SAMPLING.max_new_tokens


@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_a_reward_is_that_of_the_ended_sequence_alone(run, chat, prompts, batch_size):
    reward = load_reward_model(run.reward).eval()
    responses = [Response(prompt, [10 + i] * (i + 1), False) for i, prompt in enumerate(prompts)]
    with torch.no_grad():
        expected = [
            float(reward(torch.tensor([row]), torch.tensor([len(row) - 1])))
            for row in (r.prompt + r.tokens + [chat.eos_id] for r in responses)
        ]
    found = score(reward, responses, batch_size=batch_size, eos_id=chat.eos_id, pad_id=chat.pad_id)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_the_divergence_is_the_expected_log_ratio_of_sampled_tokens(run, base_model, chat, prompts):
    """One-token responses: the mean of log p/q over many samples approaches the exact divergence."""
    reference = load_model(run.tuned).eval()
    (exact,) = divergences(
        base_model, reference, [Response(prompts[0], [9], False)], batch_size=1, pad_id=chat.pad_id
    )
    with torch.no_grad():
        prompt_BT = torch.tensor([prompts[0]])
        log_p_V, log_q_V = (m(prompt_BT)[0, -1].log_softmax(-1) for m in (base_model, reference))
    drawn_N = torch.multinomial(log_p_V.exp(), 20000, True, generator=torch.Generator().manual_seed(0))
    assert exact == pytest.approx(float((log_p_V - log_q_V)[drawn_N].mean()), rel=0.05)
    assert exact > 0.01


def test_a_model_does_not_diverge_from_itself(base_model, chat, prompts):
    responses = [Response(prompt, [9, 10, 11], False) for prompt in prompts]
    found = divergences(base_model, base_model, responses, batch_size=2, pad_id=chat.pad_id)
    np.testing.assert_allclose(found, 0.0, atol=1e-6)


def test_no_prompts_give_no_responses_and_no_scores(run, base_model, chat):
    assert respond(base_model, [], SAMPLING, eos_id=chat.eos_id, pad_id=chat.pad_id) == []
    assert len(score(load_reward_model(run.reward), [], batch_size=2, eos_id=1, pad_id=2)) == 0
    assert len(divergences(base_model, base_model, [], batch_size=2, pad_id=chat.pad_id)) == 0
