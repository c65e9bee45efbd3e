"""Rotary position embedding, and its stretching over more tokens than a model was trained with."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from models.config import ModelConfig, RopeScaling


class RotaryEmbedding(nn.Module):
    """Cosines and sines of rotary position embedding (Su et al. 2021, RoFormer, section 3.2), always fp32.

    The tables are not part of the state dict. A change of the module's dtype does not touch them: rounded to
    bf16 the angles of distant positions are wrong.
    """

    cos_PE: Tensor
    sin_PE: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.theta = config.rope_theta
        self.scaling = config.rope_scaling
        self.head_dim = config.head_dim
        self.positions = config.max_position_embeddings
        self.register_buffer("cos_PE", torch.empty(0), persistent=False)
        self.register_buffer("sin_PE", torch.empty(0), persistent=False)
        self._compute_tables()

    def forward(self, length: int, start: int, positions_BT: Tensor | None) -> tuple[Tensor, Tensor]:
        """Tables (cos, sin) of `length` positions from `start`, or of given ones, to use on queries_BTHD."""
        if positions_BT is None:
            rows = slice(start, start + length)
            return self.cos_PE[rows].unsqueeze(1), self.sin_PE[rows].unsqueeze(1)
        return self.cos_PE[positions_BT].unsqueeze(2), self.sin_PE[positions_BT].unsqueeze(2)

    def _apply(self, fn, recurse: bool = True):
        # Module.to, .half, .to_empty and the like all come through here: keep their device, not their dtype.
        super()._apply(fn, recurse)
        self._compute_tables()
        return self

    def _compute_tables(self) -> None:
        frequencies_E, sharpening = frequencies(self.theta, self.head_dim, self.scaling, self.cos_PE.device)
        angles_PE = torch.arange(self.positions, device=self.cos_PE.device).float()[:, None] * frequencies_E
        self.cos_PE, self.sin_PE = angles_PE.cos() * sharpening, angles_PE.sin() * sharpening


def frequencies(
    theta: float, head_dim: int, scaling: RopeScaling | None, device: torch.device | str = "cpu"
) -> tuple[Tensor, float]:
    """Radians per token of each pair of channels, frequencies_E, and what cosines and sines are times.

    The sources of the scalings are at `models.config.RopeScaling`.
    """
    channels_E = torch.arange(0, head_dim, 2, dtype=torch.int64, device=device).float()
    unscaled_E = 1.0 / (theta ** (channels_E / head_dim))
    if scaling is None:
        return unscaled_E, 1.0
    if scaling.rope_type == "linear":
        return unscaled_E / scaling.factor, 1.0
    if scaling.rope_type == "llama3":
        return _llama3(unscaled_E, scaling), 1.0
    sharpening = scaling.attention_factor
    if sharpening is None:
        sharpening = 0.1 * math.log(scaling.factor) + 1.0
    return _yarn(unscaled_E, theta, head_dim, scaling), sharpening


def rotate(x_BTHD: Tensor, cos: Tensor, sin: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn channel pairs (i, i + D/2) by the angles of their positions, in fp32; returned as `dtype`.

    The half-split pairing is that of transformers' `apply_rotary_pos_emb`; the paper pairs neighbours, which
    is the same up to a permutation of the projection's rows.
    """
    first, second = x_BTHD.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(dtype)


def _llama3(unscaled_E: Tensor, scaling: RopeScaling) -> Tensor:
    """Waves longer than the training length over `low_freq_factor` are stretched whole, those shorter than it
    over `high_freq_factor` not at all."""
    trained = scaling.original_max_position_embeddings or 1
    turns_E = trained * unscaled_E / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept_E = ((turns_E - low) / (high - low)).clamp(0.0, 1.0)
    return (1 - kept_E) * unscaled_E / scaling.factor + kept_E * unscaled_E


def _yarn(unscaled_E: Tensor, theta: float, head_dim: int, scaling: RopeScaling) -> Tensor:
    """Section 3.2: channels that turn more than `beta_fast` times over the training length stay, those that
    turn less than `beta_slow` times are stretched, with a ramp over the channels between."""
    trained = scaling.original_max_position_embeddings or 1

    def channel(turns: float) -> float:
        return head_dim * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first = max(math.floor(channel(scaling.beta_fast)), 0)
    last = min(math.ceil(channel(scaling.beta_slow)), head_dim - 1)
    width = (last - first) or 0.001  # a step where both bounds fall on one channel
    index_E = torch.arange(len(unscaled_E), device=unscaled_E.device).float()
    stretched_E = ((index_E - first) / width).clamp(0.0, 1.0)
    return unscaled_E / scaling.factor * stretched_E + unscaled_E * (1 - stretched_E)
