import copy

import pytest
import torch
from torch.nn import functional as F

from models.cache import KeyValueCache
from models.heads import RewardModel, ValueModel
from models.initialization import initialise
from models.masks import Sight
from models.norms import RMSNorm
from models.transformer import CausalLM


def tokens(config, batch, length, seed=0):
    return torch.randint(0, config.vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))


def test_a_token_does_not_see_those_after_it(model, config):
    ours = tokens(config, 1, 12)
    changed = ours.clone()
    changed[0, 7:] = (changed[0, 7:] + 1) % config.vocab_size
    torch.testing.assert_close(model(ours)[:, :7], model(changed)[:, :7])
    assert not torch.allclose(model(ours)[:, 7:], model(changed)[:, 7:])


@pytest.mark.parametrize("chunks", [[1] * 12, [5, 7], [8, 1, 1, 2], [12]])
def test_decoding_with_the_cache_equals_one_pass(model, config, chunks):
    ours = tokens(config, 3, 12)
    cache = KeyValueCache(config, batch=3, length=12)
    parts = [model(chunk, cache=cache) for chunk in ours.split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), model(ours), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("chunks", [[9], [5, 4], [5, 1, 1, 2]])
def test_a_left_padded_row_equals_the_row_alone(model, config, chunks):
    lengths = [9, 4, 1]
    rows = [tokens(config, 1, length, seed=length) for length in lengths]
    padded_BT = torch.cat([F.pad(row, (9 - row.shape[1], 0), value=50) for row in rows])
    padding_BT = torch.arange(9) < 9 - torch.tensor(lengths)[:, None]
    cache = KeyValueCache(config, batch=3, length=9)
    parts, end = [], 0
    for chunk in padded_BT.split(chunks, dim=1):
        end += chunk.shape[1]
        parts.append(model(chunk, padding_BT=padding_BT[:, :end], cache=cache))
    logits_BTV = torch.cat(parts, dim=1)
    assert logits_BTV.isfinite().all()
    for row, length, alone in zip(logits_BTV, lengths, rows, strict=True):
        torch.testing.assert_close(row[9 - length :], model(alone)[0], atol=1e-5, rtol=1e-5)


def test_padding_gives_finite_gradients(model, config):
    padding_BT = torch.tensor([[True, True, False, False]])
    model(tokens(config, 1, 4), padding_BT=padding_BT)[~padding_BT].logsumexp(-1).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_the_mask_of_padded_rows_leaves_no_query_without_a_key():
    padding_BS = torch.tensor([[True, True, False, False], [False, False, False, False]])
    mask = Sight(padding_BS=padding_BS).mask(torch.arange(1, 4), torch.arange(4), None)
    assert mask[:, 0].int().tolist() == [
        [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]],
        [[1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]],
    ]


def test_given_positions_are_used(model, config):
    ours = tokens(config, 2, 6)
    torch.testing.assert_close(model(ours, positions_BT=torch.arange(6).expand(2, 6)), model(ours))
    spread_BT = torch.arange(0, 30, 5).expand(2, 6)
    assert not torch.allclose(model(ours, positions_BT=spread_BT), model(ours), atol=1e-3)


def test_positions_are_relative(model, config):
    ours = tokens(config, 2, 6)
    shifted_BT = torch.arange(20, 26).expand(2, 6)
    torch.testing.assert_close(model(ours, positions_BT=shifted_BT), model(ours), atol=1e-5, rtol=1e-5)


def test_more_tokens_than_positions_are_refused(model, config):
    with pytest.raises(ValueError, match="49 tokens are more than max_position_embeddings 48"):
        model(tokens(config, 1, 49))


def test_more_tokens_than_the_cache_holds_are_refused(model, config):
    cache = KeyValueCache(config, batch=1, length=4)
    model(tokens(config, 1, 3), cache=cache)
    with pytest.raises(ValueError, match="5 tokens are more than the cache holds, 4"):
        model(tokens(config, 1, 2), cache=cache)


def test_padding_that_leaves_out_cached_tokens_is_refused(model, config):
    cache = KeyValueCache(config, batch=1, length=4)
    model(tokens(config, 1, 3), cache=cache)
    with pytest.raises(ValueError, match="padding covers 1 tokens; there are 4"):
        model(tokens(config, 1, 1), padding_BT=torch.zeros(1, 1, dtype=torch.bool), cache=cache)


def test_hidden_states_and_head_make_the_logits(model, config):
    ours = tokens(config, 2, 5)
    assert torch.equal(model.lm_head(model.hidden(ours)), model(ours))


def test_tied_head_and_embedding_are_one_parameter(model, config, make):
    assert model.lm_head.weight is model.model.embed_tokens.weight
    untied = make(config.model_copy(update={"tie_word_embeddings": False}))
    assert untied.lm_head.weight is not untied.model.embed_tokens.weight
    copied = copy.deepcopy(model)
    assert copied.lm_head.weight is copied.model.embed_tokens.weight


def test_the_norm_is_computed_in_fp32(config):
    norm = RMSNorm(config.hidden_size, config.rms_norm_eps).to(torch.bfloat16)
    x = 300 * torch.randn(1, 4, config.hidden_size, generator=torch.Generator().manual_seed(0))
    x = x.to(torch.bfloat16)
    exact = x.double() / (x.double().square().mean(-1, keepdim=True) + config.rms_norm_eps).sqrt()
    assert torch.equal(norm(x), exact.to(torch.bfloat16))


def test_rotary_tables_stay_exact_when_the_model_becomes_bf16(model):
    before = model.model.rotary.cos_PE.clone()
    half = model.to(torch.bfloat16)
    assert half.model.layers[0].mlp.up_proj.weight.dtype == torch.bfloat16
    assert half.model.rotary.cos_PE.dtype == torch.float32
    assert torch.equal(half.model.rotary.cos_PE, before)


def test_bf16_autocast_is_close_to_fp32_and_trains_every_parameter(model, config):
    ours = tokens(config, 2, 16)
    exact = model(ours)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = model(ours)
    assert rounded.dtype == torch.bfloat16
    assert (rounded - exact).abs().max() < 0.05 * exact.abs().max()
    F.cross_entropy(rounded.float()[:, :-1].flatten(0, 1), ours[:, 1:].flatten()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.dtype == torch.float32, name
        assert parameter.grad.abs().sum() > 0, name


def test_an_overfitted_sequence_is_predicted(config):
    model = CausalLM(config)
    initialise(model, config, seed=1)
    ours = torch.tensor([[3, 1, 2, 7, 9, 11, 4]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(model(ours[:, :-1])[0], ours[0, 1:]).backward()
        optimizer.step()
    assert model(ours[:, :-1])[0].argmax(-1).tolist() == ours[0, 1:].tolist()


@pytest.mark.parametrize("kind", [CausalLM, RewardModel, ValueModel])
def test_initialisation_is_repeatable_and_fills_every_parameter(config, kind):
    first, second, other = kind(config), kind(config), kind(config)
    for model in (first, second, other):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(torch.nan)
    initialise(first, config, seed=7)
    initialise(second, config, seed=7)
    initialise(other, config, seed=8)
    assert all(parameter.isfinite().all() for parameter in first.parameters())
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.model.embed_tokens.weight, other.model.embed_tokens.weight)


def test_initialisation_has_the_stated_spreads(config):
    config = config.model_copy(update={"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 8})
    model = CausalLM(config)
    initialise(model, config, seed=1)
    weights = {name.removeprefix("model.layers.3."): weight for name, weight in model.named_parameters()}
    for name in ("model.embed_tokens.weight", "self_attn.q_proj.weight", "mlp.gate_proj.weight"):
        assert weights[name].std().item() == pytest.approx(0.2, rel=0.03)
    for name in ("self_attn.o_proj.weight", "mlp.down_proj.weight"):
        assert weights[name].std().item() == pytest.approx(0.2 / 4, rel=0.03)
    assert (weights["input_layernorm.weight"] == 1).all()
