"""Attention to a window of the tokens before, in blocks: time and memory grow with the window."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from models.masks import Sight


def windowed_attention(
    queries_BHTD: Tensor, keys_BKTD: Tensor, values_BKTD: Tensor, window: int, sight: Sight
) -> Tensor:
    """Causal attention in which a token sees the `window` last tokens, itself included; mixed_BHTD.

    Queries are taken in blocks of about half a window, and each block looks at the keys that one of its
    tokens may see (Beltagy et al. 2020, Longformer, section 3.1, in one direction). Nothing but the arguments
    is kept for the backward pass, which computes a block once more.
    """
    return _Windowed.apply(queries_BHTD, keys_BKTD, values_BKTD, window, sight)  # type: ignore[no-any-return]


def block_length(window: int) -> int:
    """Queries of a block: short ones see fewer keys in vain, long ones make larger products."""
    return max(window // 2, 64)


class _Windowed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, window: int, sight: Sight) -> Tensor:
        ctx.save_for_backward(queries, keys, values)
        ctx.window, ctx.sight = window, sight
        mixed = torch.empty_like(queries)
        for rows, columns in _blocks(queries.shape[2], window):
            mask = sight.mask(*_positions(rows, columns, queries.device), window)
            mixed[:, :, rows] = _attention(
                queries[:, :, rows], keys[:, :, columns], values[:, :, columns], mask
            )
        return mixed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        inputs = ctx.saved_tensors
        totals = tuple(torch.zeros_like(tensor) for tensor in inputs)
        for rows, columns in _blocks(inputs[0].shape[2], ctx.window):
            parts = (rows, columns, columns)
            mask = ctx.sight.mask(*_positions(rows, columns, gradient.device), ctx.window)
            with torch.enable_grad():
                block = [
                    x[:, :, part].detach().requires_grad_() for x, part in zip(inputs, parts, strict=True)
                ]
                mixed = _attention(block[0], block[1], block[2], mask)
            for total, part, found in zip(
                totals, parts, torch.autograd.grad(mixed, block, gradient[:, :, rows]), strict=True
            ):
                total[:, :, part] += found
        return (*totals, None, None)


def _attention(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    grouped = queries.shape[1] != keys.shape[1]
    return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=grouped)


def _blocks(length: int, window: int) -> list[tuple[slice, slice]]:
    """The queries of each block and the keys that they see."""
    size = block_length(window)
    return [
        (
            slice(start, min(start + size, length)),
            slice(max(0, start - window + 1), min(start + size, length)),
        )
        for start in range(0, length, size)
    ]


def _positions(rows: slice, columns: slice, device: torch.device) -> tuple[Tensor, Tensor]:
    return (
        torch.arange(rows.start, rows.stop, device=device),
        torch.arange(columns.start, columns.stop, device=device),
    )
