import math

import pytest
import torch

from tasks.training.losses import token_cross_entropy


def test_equal_logits_cost_the_logarithm_of_the_vocabulary_for_each_target():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    loss = token_cross_entropy(torch.zeros(2, 3, 7), torch.zeros(2, 3, dtype=torch.int64), mask)
    assert loss.item() == pytest.approx(3 * math.log(7))


def test_it_is_the_sum_of_the_negative_log_probabilities_of_the_targets():
    logits = torch.randn(2, 5, 11, generator=torch.Generator().manual_seed(0))
    targets = torch.randint(0, 11, (2, 5), generator=torch.Generator().manual_seed(1))
    mask = torch.tensor([[True, False, True, True, False], [False, True, True, True, True]])
    expected = sum(
        -math.log(math.exp(logits[b, t, targets[b, t]]) / logits[b, t].exp().sum())
        for b in range(2)
        for t in range(5)
        if mask[b, t]
    )
    assert token_cross_entropy(logits, targets, mask).item() == pytest.approx(expected, rel=1e-5)


def test_what_is_masked_has_no_gradient():
    logits = torch.zeros(1, 2, 3, requires_grad=True)
    token_cross_entropy(logits, torch.tensor([[1, 2]]), torch.tensor([[True, False]])).backward()
    assert logits.grad is not None
    assert logits.grad[0, 1].tolist() == [0, 0, 0]
    assert logits.grad[0, 0].tolist() == pytest.approx([1 / 3, 1 / 3 - 1, 1 / 3])


def test_smoothed_labels_mix_in_the_mean_over_the_vocabulary():
    logits = torch.randn(1, 4, 6, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[1, 5, 0, 2]])
    mask = torch.tensor([[True, True, False, True]])
    log_probabilities = logits.log_softmax(-1)
    spread = -log_probabilities.mean(-1)[mask].sum()
    expected = 0.9 * token_cross_entropy(logits, targets, mask) + 0.1 * spread
    found = token_cross_entropy(logits, targets, mask, label_smoothing=0.1)
    torch.testing.assert_close(found, expected)


def test_no_target_is_no_loss():
    loss = token_cross_entropy(torch.ones(1, 2, 3), torch.tensor([[1, 2]]), torch.zeros(1, 2).bool())
    assert loss.item() == 0


def test_under_autocast_the_softmax_is_in_fp32():
    logits = torch.tensor([[[100.0, 99.0, -50.0]]]).to(torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        loss = token_cross_entropy(logits, torch.tensor([[1]]), torch.tensor([[True]]))
    assert loss.dtype == torch.float32
    # In bf16, whose neighbours of 100 lie 0.5 apart, the logarithm of the sum would be 100.5.
    assert loss.item() == pytest.approx(1 + math.log1p(math.exp(-1)), abs=1e-6)
