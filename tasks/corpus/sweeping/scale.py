"""The axis that a signal is drawn over."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel

from tasks.corpus.sweeping.thresholds import quantile

_TAIL = 0.005
"""Share of the documents at either end that do not stretch the axis."""


class Scale(BaseModel):
    """Values from ``low`` to ``high`` as places from 0 to 1; a logarithmic one is even in ln(1 + x)."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def fitting(cls, grid_G: np.ndarray, documents_G: np.ndarray, marks: Sequence[float]) -> Scale:
        """An axis for a distribution, with all marks on it."""
        finite = np.isfinite(grid_G)
        grid_G, documents_G = grid_G[finite], documents_G[finite]
        if not len(grid_G):
            grid_G, documents_G = np.array(marks or [0.0]), np.ones(max(1, len(marks)))
        ends = [quantile(grid_G, documents_G, share) for share in (_TAIL, 1 - _TAIL)]
        low, high = min([*ends, *marks]), max([*ends, *marks])
        if low == high:
            low, high = low - 0.5, high + 0.5
        median = max(1.0, quantile(grid_G, documents_G, 0.5))
        return cls(low=low, high=high, logarithmic=bool(low >= 0 and high > 10 * median))

    def place(self, value: float) -> float:
        """Where a value lies: 0 and below, 1 and above for those without."""
        low, high, at = (self._even(x) for x in (self.low, self.high, min(max(value, self.low), self.high)))
        return (at - low) / (high - low)

    def histogram(self, grid_G: np.ndarray, documents_G: np.ndarray, bars: int) -> list[int]:
        """Documents in even stretches of the axis; what lies beyond it counts to the nearest."""
        counts = [0] * bars
        for value, documents in zip(grid_G.tolist(), documents_G.tolist(), strict=True):
            counts[min(bars - 1, int(self.place(value) * bars))] += documents
        return counts

    def _even(self, value: float) -> float:
        return math.log1p(value) if self.logarithmic else value
