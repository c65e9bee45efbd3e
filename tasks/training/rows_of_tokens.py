"""Rows of unequal length as one rectangle, padded on the right to the longest."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def pad_right(rows: Sequence[Sequence[int]], pad_id: int) -> Tensor:
    """tokens_BT (int64), as wide as the longest row."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (width - len(row))] for row in rows])


def last_positions(rows: Sequence[Sequence[int]]) -> Tensor:
    """last_B, the index of each row's last token."""
    return torch.tensor([len(row) - 1 for row in rows])
