"""Which tokens a token looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sight:
    """What decides, apart from a layer's window, which tokens of a row look at which.

    Attributes:
        causal: a token sees none after it.
        padding_BS: True on padding, by position; a token always sees itself, so that no softmax is empty.
        segments_BT: the number of each token's document: a token sees its own document's tokens only.
    """

    causal: bool = True
    padding_BS: Tensor | None = None
    segments_BT: Tensor | None = None

    @property
    def of_all(self) -> bool:
        """Whether order alone decides."""
        return self.padding_BS is None and self.segments_BT is None

    def mask(self, queries_T: Tensor, keys_S: Tensor, window: int | None) -> Tensor:
        """True where a query may look, for queries and keys at given positions; (B or 1, 1, T, S)."""
        distance_TS = queries_T[:, None] - keys_S[None, :]
        visible = torch.ones_like(distance_TS, dtype=torch.bool)
        if self.causal:
            visible = distance_TS >= 0
        if window is not None:
            visible = visible & (distance_TS < window)
        visible = visible[None]
        if self.segments_BT is not None:
            documents_BT1 = self.segments_BT[:, queries_T, None]
            visible = visible & (documents_BT1 == self.segments_BT[:, None, keys_S])
        if self.padding_BS is not None:
            visible = visible & ~self.padding_BS[:, None, keys_S] | (distance_TS == 0)
        return visible[:, None]


def document_numbers(starts: Sequence[Sequence[int]], length: int) -> Tensor:
    """segments_BT of rows whose documents begin at given columns; columns before the first are document 0."""
    rows = torch.zeros(len(starts), length, dtype=torch.int64)
    for row, columns in enumerate(starts):
        rows[row, [column for column in columns if column < length]] = 1
    return rows.cumsum(dim=1)
