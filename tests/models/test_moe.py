"""Experts: against a loop over tokens, and what balances them."""

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from models.config import ModelConfig
from models.dispatch import through_experts
from models.moe import SparseMoE
from models.routing import (
    Routing,
    balance_loss,
    choices,
    choose_experts,
    update_biases,
    within_capacity,
    z_loss,
)


@pytest.fixture
def layer(config: ModelConfig):
    """A layer of experts with any further choices."""

    def made(**choice: Any) -> SparseMoE:
        given = config.model_dump() | {"num_local_experts": 6, "num_experts_per_tok": 2} | choice
        module = SparseMoE(ModelConfig.model_validate(given), layer=0)
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.normal_(0, 0.3, generator=generator)
        return module

    return made


@pytest.fixture
def x_BTC() -> torch.Tensor:
    return torch.randn(3, 10, 32, generator=torch.Generator().manual_seed(0))


def one_by_one(layer: SparseMoE, x_BTC: torch.Tensor) -> torch.Tensor:
    """Every token through its experts, one after another."""
    out = torch.zeros_like(x_BTC)
    for row, column in torch.cartesian_prod(*map(torch.arange, x_BTC.shape[:2])).tolist():
        x = x_BTC[row, column]
        probabilities = (layer.gate.weight @ x).softmax(-1)
        weights, experts = probabilities.topk(layer.config.num_experts_per_tok)
        if layer.config.norm_topk_prob:
            weights = weights / weights.sum()
        for weight, expert in zip(weights, experts.tolist(), strict=True):
            gate, up = (layer.experts.gate_up_proj[expert] @ x).chunk(2)
            out[row, column] += weight * (layer.experts.down_proj[expert] @ (F.silu(gate) * up))
        if layer.shared_expert is not None:
            out[row, column] += layer.shared_expert(x)
    return out


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"norm_topk_prob": False},
        {"num_experts_per_tok": 1},
        {"num_experts_per_tok": 6},
        {"num_local_experts": 1, "num_experts_per_tok": 1},
        {"num_shared_experts": 2, "moe_intermediate_size": 12},
    ],
)
def test_the_layer_computes_what_a_loop_over_tokens_computes(layer, x_BTC, choice):
    module = layer(**choice)
    torch.testing.assert_close(module(x_BTC), one_by_one(module, x_BTC), atol=1e-5, rtol=1e-5)


def test_the_gradients_of_the_dispatch_are_right():
    generator = torch.Generator().manual_seed(1)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    taken_NE = torch.tensor([[1, 0, 1], [0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=torch.bool)
    inputs = (drawn(4, 3), drawn(4, 3), drawn(3, 4, 3), drawn(3, 3, 2))
    assert torch.autograd.gradcheck(
        lambda x, gates, up, down: through_experts(x, gates, taken_NE, up, down), inputs
    )


def test_rows_do_not_depend_on_the_rows_beside_them(layer, x_BTC):
    module = layer(expert_capacity_factor=1.0)
    together = module(x_BTC)
    torch.testing.assert_close(together, torch.cat([module(row[None]) for row in x_BTC]))


def test_loads_and_losses_are_sums_over_rows(layer, x_BTC):
    module, whole = layer(), Routing()
    module(x_BTC, whole)
    parts = [Routing() for _ in x_BTC]
    for row, part in zip(x_BTC, parts, strict=True):
        module(row[None], part)
    assert torch.equal(whole.loads_E[0], torch.stack([part.loads_E[0] for part in parts]).sum(0))
    assert whole.loads_E[0].sum() == 3 * 10 * 2
    torch.testing.assert_close(whole.balance[0], sum(part.balance[0] for part in parts))
    torch.testing.assert_close(whole.z[0], sum(part.z[0] for part in parts))


def test_padding_neither_counts_nor_takes_room(layer, x_BTC):
    module = layer(expert_capacity_factor=0.5)
    counted_BT = torch.arange(10) < torch.tensor([[10], [4], [0]])
    routing = Routing(counted_BT=counted_BT)
    padded = torch.where(counted_BT[..., None], x_BTC, 100.0)
    y_BTC = module(padded, routing)
    assert routing.loads_E[0].sum() == 14 * 2
    again = Routing(counted_BT=counted_BT)
    other = torch.where(counted_BT[..., None], x_BTC, -7.0)
    assert torch.equal(y_BTC[counted_BT], module(other, again)[counted_BT])
    assert torch.equal(routing.balance[0], again.balance[0])
    assert torch.equal(routing.z[0], again.z[0])


def test_a_full_expert_keeps_the_most_probable_tokens_and_the_others_pass_by(layer, x_BTC):
    chosen_BTE = torch.ones(1, 4, 1, dtype=torch.bool)
    probabilities_BTE = torch.tensor([0.2, 0.9, 0.9, 0.3])[None, :, None]
    kept = within_capacity(chosen_BTE, probabilities_BTE, factor=0.5, per_token=1)
    assert kept[0, :, 0].tolist() == [False, True, True, False]
    kept = within_capacity(chosen_BTE, probabilities_BTE, factor=0.25, per_token=1)
    assert kept[0, :, 0].tolist() == [False, True, False, False]
    routing, module = Routing(), layer(num_experts_per_tok=1, expert_capacity_factor=0.1)
    y_BTC = module(x_BTC, routing)
    passed = (y_BTC == 0).all(-1)
    assert passed.sum() == routing.dropped[0] > 0


def test_equal_experts_are_taken_in_order():
    chosen, weights = choose_experts(torch.full((1, 1, 5), 0.2), None, 2, True)
    assert chosen.tolist() == [[[0, 1]]]
    assert weights.tolist() == [[[0.5, 0.5]]]


def test_a_bias_moves_the_choice_and_not_the_weights():
    probabilities = torch.tensor([[[0.5, 0.3, 0.2]]])
    chosen, weights = choose_experts(probabilities, torch.tensor([0.0, 0.0, 1.0]), 2, False)
    assert chosen.tolist() == [[[2, 0]]]
    torch.testing.assert_close(weights, torch.tensor([[[0.2, 0.5]]]))


def test_the_balance_loss_is_one_for_each_token_at_even_use_and_more_where_one_expert_takes_all():
    even_BTE = torch.full((2, 4, 4), 0.25)
    each = torch.arange(4).view(1, 4, 1).expand(2, 4, 1)
    assert balance_loss(even_BTE, choices(each, 4, None), 1, None).item() == pytest.approx(8)
    skewed_BTE = torch.tensor([0.97, 0.01, 0.01, 0.01]).expand(2, 4, 4)
    first = torch.zeros(2, 4, 1, dtype=torch.int64)
    expected = 8 * 4 * 0.97
    assert balance_loss(skewed_BTE, choices(first, 4, None), 1, None).item() == pytest.approx(expected)


def test_the_z_loss_is_the_squared_log_of_the_denominator():
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    expected = sum(row.exp().sum().log() ** 2 for row in logits.view(-1, 4))
    torch.testing.assert_close(z_loss(logits, None), expected)


def test_biases_fall_where_experts_are_busy_and_even_out_the_loads(config, make):
    choice = {"num_local_experts": 4, "num_experts_per_tok": 1, "router_balance": "bias"}
    model = make(config.model_copy(update=choice))
    ours = torch.randint(0, config.vocab_size, (8, 40), generator=torch.Generator().manual_seed(0))

    def loads() -> torch.Tensor:
        routing = Routing()
        model(ours, routing=routing)
        return torch.stack([routing.loads_E[layer] for layer in range(2)])

    before = loads()
    update_biases(model, before, rate=0.01)
    bias = model.model.layers[0].mlp.expert_bias
    assert bias.sign().tolist() == (before[0].float().mean() - before[0]).sign().tolist()
    for _ in range(60):
        update_biases(model, loads(), rate=0.01)
    assert (loads().float().std(dim=1) < before.float().std(dim=1) / 3).all()


def test_noise_is_in_training_only(layer, x_BTC):
    module = layer(router_noise=2.0)
    quiet = layer()(x_BTC)
    assert torch.equal(module.eval()(x_BTC), quiet)
    torch.manual_seed(0)
    assert not torch.equal(module.train()(x_BTC), quiet)


def test_the_router_works_in_fp32_under_autocast(layer, x_BTC):
    exact, rounded, module = Routing(), Routing(), layer()
    module(x_BTC, exact)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        module(x_BTC, rounded)
    assert torch.equal(exact.z[0], rounded.z[0])


def test_a_nan_stays_in_its_token_and_no_tokens_give_none(layer, x_BTC):
    module = layer()
    x_BTC[1, 3] = torch.nan
    y_BTC = module(x_BTC)
    assert y_BTC[1, 3].isnan().all()
    assert y_BTC.isnan().any(-1).sum() == 1
    assert module(x_BTC[:, :0]).shape == (3, 0, 32)


def test_an_unused_expert_has_a_gradient_of_zero(layer, x_BTC):
    module = layer(num_experts_per_tok=1)
    module(x_BTC[:1, :1]).sum().backward()
    used = (module.experts.down_proj.grad != 0).flatten(1).any(dim=1)
    assert used.sum() == 1
