from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from models.config import ModelConfig

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
}


class GatedFeedForward(nn.Module):
    """Feed-forward network with a gated linear unit (Shazeer 2020, GLU Variants Improve Transformer)."""

    def __init__(self, config: ModelConfig, inner_size: int | None = None) -> None:
        super().__init__()
        inner = inner_size or config.intermediate_size
        self.activation = ACTIVATIONS[config.hidden_act]
        self.gate_proj = nn.Linear(config.hidden_size, inner, bias=config.mlp_bias)
        self.up_proj = nn.Linear(config.hidden_size, inner, bias=config.mlp_bias)
        self.down_proj = nn.Linear(inner, config.hidden_size, bias=config.mlp_bias)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """x_BTC to x_BTC, position by position."""
        return self.down_proj(self.activation(self.gate_proj(x_BTC)) * self.up_proj(x_BTC))


class FeedForward(nn.Module):
    """Two matrices with an activation between (Vaswani et al. 2017, section 3.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.hidden_act]
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=config.mlp_bias)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=config.mlp_bias)

    def forward(self, x_BTC: Tensor) -> Tensor:
        """x_BTC to x_BTC, position by position."""
        return self.down_proj(self.activation(self.up_proj(x_BTC)))
