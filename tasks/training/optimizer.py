from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from tasks.parameters import StageParams

if TYPE_CHECKING:
    import torch
    from torch import nn


class OptimizerParams(StageParams):
    """AdamW (Loshchilov and Hutter 2019) and the bound on the gradient."""

    learning_rate: float = Field(default=1e-3, gt=0, description="the peak of the schedule")
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.95, ge=0, lt=1)
    epsilon: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.1, ge=0, description="on matrices only: not on norms and biases")
    clip_norm: float = Field(default=1.0, gt=0, description="largest norm of the whole gradient")


def adamw(model: nn.Module, params: OptimizerParams) -> torch.optim.AdamW:
    """AdamW over the trainable parameters; weight decay on those with two dimensions or more."""
    import torch

    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": params.weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=params.learning_rate,
        betas=(params.beta1, params.beta2),
        eps=params.epsilon,
        fused=True,
    )
