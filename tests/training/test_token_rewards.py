from __future__ import annotations

import torch

from tasks.training.token_rewards import response_scores, token_rewards


def test_the_score_stands_at_the_last_token_and_the_penalty_at_each():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    kl = torch.tensor([[1.0, 2.0, 3.0], [4.0, 99.0, float("nan")]])
    rewards = token_rewards(torch.tensor([10.0, 20.0]), kl, mask, coefficient=0.5)
    torch.testing.assert_close(rewards, torch.tensor([[-0.5, -1.0, 8.5], [18.0, 0.0, 0.0]]))


def test_only_a_response_without_end_is_penalised():
    scores = response_scores(torch.tensor([1.0, 2.0]), torch.tensor([True, False]), missing_eos_penalty=1.5)
    assert scores.tolist() == [1.0, 0.5]
