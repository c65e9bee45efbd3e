from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.config import ModelConfig


class RMSNorm(nn.Module):
    """Root-mean-square normalisation (Zhang and Sennrich 2019), computed in fp32.

    Returns the autocast type where autocast is on: each of the projections that follow would otherwise cast
    the same fp32 input once more.
    """

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x, each vector of its last dimension scaled to root mean square 1, times the weight."""
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.eps).to(_result_type(x))


class LayerNorm(nn.Module):
    """Layer normalisation (Ba et al. 2016) with a bias, computed in fp32 and returned as `RMSNorm` does."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x, each vector of its last dimension shifted and scaled to mean 0 and variance 1, then affinely."""
        weight, bias = self.weight.float(), self.bias.float()
        return F.layer_norm(x.float(), self.weight.shape, weight, bias, self.eps).to(_result_type(x))


class HeadNorm(RMSNorm):
    """`RMSNorm` over the channels of a head."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config.head_dim, config.rms_norm_eps)


def stream_norm(config: ModelConfig) -> RMSNorm | LayerNorm:
    """The norm of the residual stream that the configuration names."""
    kind = RMSNorm if config.norm == "rms" else LayerNorm
    return kind(config.hidden_size, config.rms_norm_eps)


def _result_type(x: Tensor) -> torch.dtype:
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
