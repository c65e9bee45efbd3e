"""The arithmetic of training and the device that does it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from tasks.parameters import ParameterError
from tasks.resources import TrainingResources

if TYPE_CHECKING:
    import torch

Precision = Literal["auto", "bf16", "fp32"]
ResolvedPrecision = Literal["bf16", "fp32"]


def choose_device(resources: TrainingResources) -> torch.device:
    """The device that ``training.accelerator`` means here; sets the number of CPU threads too.

    Raises:
        ParameterError: naming the key of ``resources.yaml`` that this machine cannot fulfil.
    """
    import torch

    if resources.devices > 1:
        raise ParameterError(
            f"resources.yaml: training.devices is {resources.devices}, but training runs on one device. "
            "Set it to 1."
        )
    if resources.accelerator == "gpu" and not torch.cuda.is_available():
        raise ParameterError(
            "resources.yaml: training.accelerator is gpu, but PyTorch sees no GPU here. "
            "Set it to auto or cpu."
        )
    torch.set_num_threads(resources.threads or len(os.sched_getaffinity(0)))
    return torch.device("cuda" if resources.accelerator != "cpu" and torch.cuda.is_available() else "cpu")


def resolve_precision(precision: Precision, device: torch.device) -> ResolvedPrecision:
    """What ``auto`` means on ``device``: bf16 autocast where the hardware multiplies bf16, else fp32."""
    import torch

    if precision != "auto":
        return precision
    if device.type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    capabilities = torch.cpu.get_capabilities()
    return "bf16" if capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") else "fp32"


def autocast(precision: ResolvedPrecision, device: torch.device) -> torch.autocast:
    """The context in which a forward pass runs under ``precision``; weights stay in fp32."""
    import torch

    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
