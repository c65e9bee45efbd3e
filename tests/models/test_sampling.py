import pytest
import torch
from transformers import TopPLogitsWarper

from models.sampling import check_sampling, choose


def frequencies(logits_V, temperature, top_p, draws=40_000):
    generator = torch.Generator().manual_seed(0)
    tokens_B = choose(logits_V.expand(draws, -1), temperature, top_p, generator)
    return torch.bincount(tokens_B, minlength=len(logits_V)) / draws


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("top_p", [0.01, 0.5, 0.9, 1.0])
def test_tokens_are_drawn_as_often_as_the_definition_says(temperature, top_p):
    logits_V = torch.tensor([0.1, 2.0, -1.0, 1.3, 0.7, -3.0])
    kept = logits_V[None] / temperature
    if top_p < 1:
        kept = TopPLogitsWarper(top_p)(torch.LongTensor(), kept)
    expected_V = torch.softmax(kept[0], dim=-1)
    found_V = frequencies(logits_V, temperature, top_p)
    # four standard deviations of a frequency over 40,000 draws are at most 0.01
    torch.testing.assert_close(found_V, expected_V, atol=0.01, rtol=0)
    assert ((found_V > 0) <= (expected_V > 0)).all()


def test_each_row_has_its_own_nucleus():
    logits_BV = torch.tensor([[5.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 5.0]]).repeat_interleave(500, 0)
    tokens_B = choose(logits_BV, 1.0, 0.5, torch.Generator().manual_seed(0))
    assert tokens_B.tolist() == [0] * 500 + [3] * 500


def test_temperature_zero_takes_the_most_probable():
    logits_BV = torch.tensor([[0.1, 0.3, 0.2], [5.0, 0.0, 4.9]])
    assert choose(logits_BV, 0.0).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("temperature", "top_p", "message"),
    [
        (-1.0, 1.0, "temperature -1.0"),
        (float("nan"), 1.0, "temperature nan"),
        (1.0, 0.0, "top_p 0.0"),
        (1.0, 1.5, "top_p 1.5"),
    ],
)
def test_impossible_values_are_named(temperature, top_p, message):
    with pytest.raises(ValueError, match=message):
        check_sampling(temperature, top_p, torch.Generator())


def test_sampling_without_a_generator_is_refused():
    with pytest.raises(ValueError, match="needs a generator"):
        check_sampling(1.0, 1.0, None)
