from typing import Any

import pytest
import torch
from torch.nn import functional as F
from transformers import LlamaForCausalLM

from models.generation import generate, stream
from models.hub import save_model

PROMPTS = [[3, 10, 20, 30, 40], [3, 11], [3, 12, 22]]
PAD = 0


def greedy(model, prompts=PROMPTS, eos_id=None, **changes):
    arguments = {"max_new_tokens": 12, "temperature": 0.0, "eos_id": eos_id, "pad_id": PAD} | changes
    return generate(model, prompts, **arguments)


def sample(model, seed, prompts=PROMPTS, **changes):
    generator = torch.Generator().manual_seed(seed)
    return greedy(model, prompts, temperature=1.0, generator=generator, **changes)


def test_greedy_generation_equals_transformers(model, tmp_path):
    save_model(model, tmp_path)
    theirs: Any = LlamaForCausalLM.from_pretrained(tmp_path)
    ours = greedy(model)
    prompts_BT = ours.tokens_BT[:, : ours.prompt_length]
    expected = theirs.generate(
        prompts_BT,
        attention_mask=(~ours.padding_BT[:, : ours.prompt_length]).long(),
        do_sample=False,
        min_new_tokens=12,
        max_new_tokens=12,
        eos_token_id=None,
        pad_token_id=PAD,
    )
    assert ours.tokens_BT.tolist() == expected.tolist()


def test_a_row_is_continued_as_if_it_were_alone(model):
    together = greedy(model).responses_BR
    for prompt, response in zip(PROMPTS, together, strict=True):
        assert greedy(model, [prompt]).responses_BR[0].tolist() == response.tolist()


def test_prompts_are_padded_on_the_left(model):
    result = greedy(model)
    assert result.prompt_length == 5
    assert result.tokens_BT[:, :5].tolist() == [[3, 10, 20, 30, 40], [0, 0, 0, 3, 11], [0, 0, 3, 12, 22]]
    assert result.padding_BT[:, :5].sum(1).tolist() == [0, 3, 2]


def test_eos_ends_a_row_and_the_rest_is_masked(model):
    free = greedy(model).responses_BR
    eos_id = int(free[0, 3])
    result = greedy(model, eos_id=eos_id)
    for ended, unbounded, mask in zip(result.responses_BR, free, result.response_mask_BR, strict=True):
        expected = unbounded.tolist()
        length = expected.index(eos_id) + 1 if eos_id in expected else len(expected)
        assert ended[:length].tolist() == expected[:length]
        assert (ended[length:] == PAD).all()
        assert mask.tolist() == [True] * length + [False] * (mask.numel() - length)
    assert torch.equal(result.padding_BT[:, result.prompt_length :], ~result.response_mask_BR)


def test_generation_stops_when_every_row_has_ended(model):
    free = greedy(model, [PROMPTS[0]]).responses_BR[0].tolist()
    eos_id = free[3]
    length = free.index(eos_id) + 1
    result = greedy(model, [PROMPTS[0]] * 2, eos_id=eos_id)
    assert result.responses_BR.shape == (2, length)
    assert result.response_mask_BR.all()


def test_the_same_generator_gives_the_same_tokens(model):
    assert torch.equal(sample(model, 1).tokens_BT, sample(model, 1).tokens_BT)
    assert not torch.equal(sample(model, 1).tokens_BT, sample(model, 2).tokens_BT)


def test_a_nucleus_of_one_token_is_greedy(model):
    assert torch.equal(sample(model, 1, top_p=1e-6).tokens_BT, greedy(model).tokens_BT)


def test_generation_under_autocast_is_repeatable(model):
    first, second = (sample(model, 1, cast=torch.bfloat16) for _ in range(2))
    assert torch.equal(first.tokens_BT, second.tokens_BT)


def test_generation_does_not_disturb_a_training_step_around_it(model):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        tokens_BT = sample(model, 1, cast=torch.bfloat16).tokens_BT
        logits_BTV = model(tokens_BT)
    F.cross_entropy(logits_BTV.float().flatten(0, 1), tokens_BT.flatten()).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_context_may_be_filled_to_the_last_position(model, config):
    limit = config.max_position_embeddings
    assert greedy(model, [[3] * (limit - 2)], max_new_tokens=2).tokens_BT.shape == (1, limit)


@pytest.mark.parametrize(
    ("prompts", "changes", "message"),
    [
        ([[3] * 40, [3]], {}, "prompt of 40 tokens and max_new_tokens 12 .* max_position_embeddings 48"),
        ([[3], []], {}, r"prompts \[1\] are empty"),
        ([], {}, "no prompts"),
        ([[3]], {"max_new_tokens": 0}, "max_new_tokens 0"),
        ([[3]], {"temperature": 1.0}, "needs a generator"),
    ],
)
def test_what_cannot_be_generated_is_refused(model, prompts, changes, message):
    with pytest.raises(ValueError, match=message):
        greedy(model, prompts, **changes)


def test_a_stream_yields_what_generate_returns(model):
    def streamed(**settings):
        return list(stream(model, PROMPTS[0], max_new_tokens=12, eos_id=None, **settings))

    assert streamed(temperature=0.0) == greedy(model, PROMPTS[:1]).responses_BR[0].tolist()
    generator = torch.Generator().manual_seed(5)
    assert streamed(temperature=1.0, generator=generator) == (
        sample(model, 5, PROMPTS[:1]).responses_BR[0].tolist()
    )


def test_a_stream_ends_before_eos(model):
    free = greedy(model, PROMPTS[:1]).responses_BR[0].tolist()
    eos_id = free[4]
    tokens = list(stream(model, PROMPTS[0], max_new_tokens=12, temperature=0.0, eos_id=eos_id))
    assert tokens == free[: free.index(eos_id)]


def test_a_stream_complains_at_the_call_and_leaves_gradients_on(model):
    with pytest.raises(ValueError, match="exceed max_position_embeddings"):
        stream(model, [3] * 40, max_new_tokens=12, temperature=0.0, eos_id=None)
    tokens = stream(model, [3], max_new_tokens=12, temperature=0.0, eos_id=None)
    next(tokens)
    assert torch.is_grad_enabled()
