"""What a pretraining run will need and cost, worked out before anything starts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import torch

from models.estimates import (
    Memory,
    Strategy,
    active_parameter_count,
    estimate_flops,
    estimate_memory,
    parameter_count,
)

if TYPE_CHECKING:
    from models.config import ModelConfig
    from tasks.resources import Accelerator

HERE = "here"
"""The name of the machine that the plan is made on, whose speed is measured on the spot."""

UTILISATION = {"fp32": 0.5, "bf16": 0.4}
"""The share of the peak that is assumed where none is given: what dense models of a billion and more
parameters reach on GPUs (Chowdhery et al. 2022, table 3: 46 % of bf16), and small ones on processors."""


@dataclass(frozen=True)
class MemoryOf:
    """A way to spread a model over devices, and what each holds."""

    strategy: Strategy
    offload: bool
    memory: Memory
    fits: bool | None
    """None: the device's memory is not known."""


@dataclass(frozen=True)
class Plan:
    """What a run comes to.

    Attributes:
        flops_per_token: forward and backward, without what recomputed activations add.
        tokens: targets and padding that pass the model in all steps.
        tokens_per_second: on all devices, at ``utilisation`` of ``peak_flops`` of each.
        cost: in the currency of the price table; None where it has no price.
    """

    parameters: int
    active_parameters: int
    flops_per_token: int
    tokens: int
    device: str
    devices: int
    precision: Literal["fp32", "bf16"]
    peak_flops: float
    utilisation: float
    tokens_per_second: float
    hours: float
    cost: float | None
    memory: list[MemoryOf]


def plan(
    config: ModelConfig,
    *,
    steps: int,
    batch_size: int,
    micro_batch_size: int,
    context: int,
    precision: Literal["fp32", "bf16"],
    device: str,
    accelerator: Accelerator,
    devices: int = 1,
    checkpoint_activations: bool = False,
) -> Plan:
    """Work out a run of ``steps`` on ``devices`` devices of the table's entry ``accelerator``.

    Raises:
        ValueError: if the entry has no peak for the precision.
    """
    peak = accelerator.teraflops.get(precision)
    if peak is None:
        known = ", ".join(accelerator.teraflops) or "none"
        raise ValueError(f"accelerators.{device}.teraflops has no {precision} (it has {known})")
    tokens = steps * batch_size * context
    flops = estimate_flops(config, context)
    utilisation = accelerator.utilisation or UTILISATION[precision]
    # A layer's forward pass once more is a third on top of forward and backward.
    work = flops * (4 / 3 if checkpoint_activations else 1)
    speed = devices * peak * 1e12 * utilisation / work
    hours = tokens / speed / 3600
    price = accelerator.price_per_hour
    return Plan(
        parameters=parameter_count(config),
        active_parameters=active_parameter_count(config),
        flops_per_token=flops,
        tokens=tokens,
        device=device,
        devices=devices,
        precision=precision,
        peak_flops=peak * 1e12,
        utilisation=utilisation,
        tokens_per_second=speed,
        hours=hours,
        cost=None if price is None else hours * devices * price,
        memory=[
            _memory_of(
                config, strategy, offload, accelerator.memory_gib, devices,
                min(micro_batch_size, batch_size), context, checkpoint_activations, precision,
            )
            for strategy in get_args(Strategy)
            for offload in ((False, True) if strategy.startswith("zero") else (False,))
            if (strategy == "single") == (devices == 1)
        ],
    )  # fmt: skip


def measured_teraflops(precision: Literal["fp32", "bf16"], seconds: float = 0.5) -> float:
    """What square matrix products of 1,024 reach on this machine: 10¹² operations a second."""
    size, dtype = 1024, {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    matrix = torch.randn(size, size, device=device).to(dtype)
    (matrix @ matrix).sum().item()
    products, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        product = matrix @ matrix
        product[0, 0].item()
        products += 1
    return 2 * size**3 * products / elapsed / 1e12


def _memory_of(
    config: ModelConfig,
    strategy: Strategy,
    offload: bool,
    memory_gib: float | None,
    devices: int,
    micro_batch: int,
    context: int,
    checkpoint_activations: bool,
    precision: str,
) -> MemoryOf:
    memory = estimate_memory(
        config,
        micro_batch=micro_batch,
        context=context,
        strategy=strategy,
        devices=devices,
        offload=offload,
        checkpoint_activations=checkpoint_activations,
        activation_bytes=4 if precision == "fp32" else 2,
    )
    fits = None if memory_gib is None else memory.device <= 0.9 * memory_gib * 2**30
    return MemoryOf(strategy, offload, memory, fits)
