from typing import Any

import pytest

from models.config import ModelConfig
from models.estimates import estimate_flops, parameter_count
from tasks.resources import Accelerator
from tasks.training.plan import Plan, measured_teraflops, plan

CONFIG = ModelConfig(
    vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
    num_key_value_heads=4, max_position_embeddings=2048,
)  # fmt: skip


def made(accelerator: dict[str, Any], **choice: Any) -> Plan:
    settings: dict[str, Any] = {
        "steps": 1000, "batch_size": 256, "micro_batch_size": 8, "context": 2048, "precision": "bf16",
        "device": "x",
    } | choice  # fmt: skip
    return plan(CONFIG, accelerator=Accelerator.model_validate(accelerator), **settings)


def test_time_and_cost_follow_from_peak_share_and_price():
    found = made({"teraflops": {"bf16": 100}, "utilisation": 0.5, "price_per_hour": 2.0}, devices=4)
    assert found.tokens == 1000 * 256 * 2048
    assert found.tokens_per_second == pytest.approx(4 * 50e12 / estimate_flops(CONFIG, 2048))
    assert found.hours == pytest.approx(found.tokens / found.tokens_per_second / 3600)
    assert found.cost == pytest.approx(found.hours * 8)


def test_without_a_price_there_is_no_cost():
    assert made({"teraflops": {"bf16": 100}}).cost is None


def test_recomputing_activations_costs_a_third_of_the_time():
    kept, again = (made({"teraflops": {"bf16": 100}}, checkpoint_activations=c) for c in (False, True))
    assert again.hours == pytest.approx(kept.hours * 4 / 3)


def test_what_does_not_fit_is_said_by_strategy():
    memory = made({"teraflops": {"bf16": 100}, "memory_gib": 16}, devices=8, micro_batch_size=1).memory
    fits = {(entry.strategy, entry.offload): entry.fits for entry in memory}
    assert 16 * parameter_count(CONFIG) / 2**30 == pytest.approx(15.4, abs=0.1)
    assert fits["ddp", False] is False
    assert fits["zero3", False] is True
    assert ("single", False) not in fits


def test_an_unknown_memory_promises_nothing():
    assert {entry.fits for entry in made({"teraflops": {"bf16": 100}}).memory} == {None}


def test_a_precision_without_a_peak_is_named():
    with pytest.raises(ValueError, match=r"accelerators\.x\.teraflops has no fp32 \(it has bf16\)"):
        made({"teraflops": {"bf16": 100}}, precision="fp32")


def test_a_measured_peak_is_a_number_of_operations():
    assert 0 < measured_teraflops("fp32", seconds=0.01) < 10_000
