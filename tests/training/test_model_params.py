"""Every choice of `params.yaml` becomes the network's, and trains."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from models.initialization import initialise
from models.transformer import CausalLM
from tasks.training.expert_loads import ExpertLoads
from tasks.training.model_params import ModelParams, model_config
from tasks.training.pretrain import PretrainParams, _objective

SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "layers": 2,
    "heads": 4,
    "kv_heads": 2,
    "intermediate_size": 48,
}


def network(**choice: Any) -> CausalLM:
    params = ModelParams.model_validate(SHAPE | choice)
    config = model_config(params, vocab_size=61, context=24, bos=1, eos=2, pad=0)
    model = CausalLM(config)
    initialise(model, config, seed=1)
    return model


def bias_of(model: CausalLM, layer: int) -> list[float]:
    return model.state_dict()[f"model.layers.{layer}.mlp.expert_bias"].tolist()


def batch(rows: int = 4) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 61, (rows, 21), generator=generator)
    return {
        "tokens": tokens[:, :-1],
        "targets": tokens[:, 1:],
        "mask": torch.rand(rows, 20, generator=generator) < 0.9,
        "segments": (torch.arange(20) >= 8).int().expand(rows, 20),
    }


@pytest.mark.parametrize(
    "choice",
    [
        {"norm": "layer", "gated": False, "activation": "gelu", "biases": True},
        {"qk_norm": True, "sliding_window": 4, "layer_pattern": "SF"},
        {"experts": {"number": 4, "balance": "loss", "z_coefficient": 0.001, "noise": 0.1}},
        {"experts": {"number": 4, "shared": 1, "size": 16, "balance": "bias", "capacity_factor": 1.25}},
        {"initialization": "kaiming", "depth_scaled": False, "residual_dropout": 0.1},
        {"initialization": "xavier", "attention_dropout": 0.1, "embedding_dropout": 0.1},
    ],
)
def test_a_network_of_every_choice_learns_its_batch(choice):
    torch.manual_seed(0)
    model = network(**choice).train()
    objective = _objective(model.config, mask_documents=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    given = batch()
    targets = objective.targets(given)
    losses = []
    for _ in range(30):
        loss = objective.loss(model, given) / targets
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimizer.step()
        assert objective.after_update is not None
        objective.after_update(model)
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("balance", ["loss", "bias"])
def test_the_loss_of_experts_does_not_depend_on_the_split_into_micro_batches(balance):
    model = network(experts={"number": 4, "balance": balance, "z_coefficient": 0.01}).train()
    objective = _objective(model.config, mask_documents=False)
    given = batch()
    whole = objective.loss(model, given)
    parts = [objective.loss(model, {k: v[row : row + 1] for k, v in given.items()}) for row in range(4)]
    torch.testing.assert_close(whole, sum(parts))


def test_validation_measures_cross_entropy_alone():
    with_losses = network(experts={"number": 4, "balance_coefficient": 10.0}).eval()
    without = network(experts={"number": 4, "balance": "none"}).eval()
    given = batch()
    losses = [_objective(m.config, mask_documents=False).loss(m, given) for m in (with_losses, without)]
    assert torch.equal(*losses)


def test_labels_are_smoothed_in_training_only():
    model, given = network(), batch()
    plain, smooth = (_objective(model.config, False, smoothing).loss for smoothing in (0.0, 0.2))
    assert smooth(model.train(), given) != plain(model, given)
    assert torch.equal(smooth(model.eval(), given), plain(model, given))


def test_masking_documents_changes_what_a_later_piece_sees():
    model = network().eval()
    given = batch()
    masked, open_ = (_objective(model.config, mask_documents=m).loss(model, given) for m in (True, False))
    assert masked != open_
    one_piece = given | {"segments": torch.zeros_like(given["segments"])}
    same = _objective(model.config, mask_documents=True).loss(model, one_piece)
    torch.testing.assert_close(same, open_)


def test_the_biases_follow_the_loads_of_a_whole_step():
    from models.routing import Routing

    model = network(experts={"number": 3, "per_token": 1, "balance": "bias", "bias_rate": 0.5})
    loads = ExpertLoads(model.config)
    for count in (1, 2):
        each = torch.tensor([3, 0, 0]) * count
        loads.add(Routing(loads_E={0: each, 1: each.flip(0)}))
    loads.settle(model)
    assert bias_of(model, 0) == [-0.5, 0.5, 0.5]
    assert bias_of(model, 1) == [0.5, 0.5, -0.5]
    loads.settle(model)  # nothing was counted since
    assert bias_of(model, 0) == [-0.5, 0.5, 0.5]


def test_a_pattern_is_repeated_over_the_layers():
    model = network(layers=3, sliding_window=4, layer_pattern="SF")
    assert [model.config.window(layer) for layer in range(3)] == [4, None, 4]


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layer_pattern": "SF"}, "sliding_window is not given"),
        ({"experts": {"number": 1}}, "num_experts_per_tok 2 is more than num_local_experts 1"),
        ({"experts": {"number": 4}, "biases": True}, "experts are gated"),
    ],
)
def test_choices_that_do_not_fit_are_refused(choice, message):
    with pytest.raises(ValueError, match=message):
        network(**choice)


def test_a_letter_that_names_no_attention_is_refused():
    with pytest.raises(ValidationError, match="layer_pattern"):
        PretrainParams.model_validate({"model": {"layer_pattern": "SX"}})
