"""Estimates against what torch counts."""

from typing import Any

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from models.config import ModelConfig
from models.estimates import active_parameter_count, estimate_flops, estimate_memory, parameter_count
from models.transformer import CausalLM

CHOICES: list[dict[str, Any]] = [
    {},
    {"norm": "layer", "gated": False, "hidden_act": "gelu", "mlp_bias": True, "attention_bias": True},
    {"qk_norm": True, "qkv_bias": True, "tie_word_embeddings": False, "head_dim": 12},
    {"num_local_experts": 4, "num_shared_experts": 1, "moe_intermediate_size": 20},
]


@pytest.mark.parametrize("choice", CHOICES)
def test_parameters_are_those_of_the_model(config, choice):
    config = config.model_copy(update=choice)
    assert parameter_count(config) == sum(p.numel() for p in CausalLM(config).parameters())


@pytest.mark.parametrize("choice", CHOICES)
def test_operations_of_the_products_are_those_that_torch_counts(config, make, choice):
    config = config.model_copy(update=choice)
    model, tokens_BT = make(config), torch.zeros(2, 10, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        model(tokens_BT).sum()
    counted = {str(op): n for op, n in counter.get_flop_counts()["Global"].items()}
    products = sum(n for name, n in counted.items() if "attention" not in name)
    assert products == 2 * active_parameter_count(config) * tokens_BT.numel()


def test_a_window_bounds_the_operations_of_attention(config):
    config = config.model_copy(update={"sliding_window": 8})
    long, short = (estimate_flops(config, context) for context in (1000, 8))
    assert long == short


@pytest.mark.parametrize("choice", [{}, {"gated": False}])
def test_kept_activations_are_those_that_autograd_keeps(choice, make):
    config = ModelConfig(
        vocab_size=64, hidden_size=96, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, **choice,
    )  # fmt: skip
    model, tokens_BT = make(config), torch.zeros(2, 256, dtype=torch.int64)
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        logits_BTV = model(tokens_BT)
    found = sum(storage.nbytes() for storage in kept.values()) + 2 * logits_BTV.nbytes
    estimated = estimate_memory(config, micro_batch=2, context=256, activation_bytes=4).activations
    assert found == pytest.approx(estimated, rel=0.15)


def test_strategies_share_out_what_they_say(config):
    def of(strategy: Any, **choice: Any):
        return estimate_memory(config, micro_batch=1, context=8, strategy=strategy, devices=4, **choice)

    size = 4 * parameter_count(config)
    assert (of("ddp").weights, of("ddp").gradients, of("ddp").optimizer) == (size, size, 2 * size)
    assert of("zero1").optimizer == size / 2
    assert (of("zero1").gradients, of("zero2").gradients) == (size, size / 4)
    assert (of("zero2").weights, of("zero3").weights) == (size, size / 4)
    assert (of("zero1", offload=True).optimizer, of("zero1", offload=True).host) == (0, size / 2)


def test_recomputed_activations_take_less(config):
    kept, again = (
        estimate_memory(config, micro_batch=1, context=8, checkpoint_activations=c) for c in (False, True)
    )
    assert again.activations < kept.activations
