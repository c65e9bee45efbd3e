"""Means over the part of a tensor that counts. What the mask leaves out may hold anything, even NaN."""

from __future__ import annotations

from torch import Tensor


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """The sum of ``values`` where ``mask`` (same shape, bool) is True."""
    return values.masked_fill(~mask, 0.0).sum()


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of ``values`` where ``mask`` (same shape, bool) is True; 0 where it never is."""
    return masked_sum(values, mask) / mask.sum().clamp(min=1)


def whiten(values: Tensor, mask: Tensor) -> Tensor:
    """``values`` shifted and scaled to mean 0 and standard deviation 1 over the mask; 0 outside of it.

    Fewer than two values, or equal ones, have no spread and become 0.
    """
    centred = (values - masked_mean(values, mask)).masked_fill(~mask, 0.0)
    variance = centred.square().sum() / (mask.sum() - 1).clamp(min=1)
    return centred * (variance + 1e-8).rsqrt()
