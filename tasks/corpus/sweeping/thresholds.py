"""Counts by threshold: of any number of documents, in memory that does not grow with them.

Values are counted on a grid of three significant digits. A minimum is swept over the grid rounded down, a
maximum over the grid rounded up, so that the counts at a threshold of the grid are exact. Sums of parts are
the whole's, in whatever order the parts come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Side = Literal["minimum", "maximum"]

MOST_THRESHOLDS = 200
"""Thresholds of a curve, at most."""

_SMALLEST, _LARGEST = -12, 18
_POWERS = np.array([float(f"1e{power}") for power in range(_SMALLEST, _LARGEST + 1)])
_TENS = np.array([float(f"1e{power}") for power in range(_LARGEST + 1)])


def round_down(values: np.ndarray) -> np.ndarray:
    """The largest number of three significant digits that is not above each value, as a person writes it.

    Below 1e-12 there is only zero, from 1e18 upwards the value itself.
    """
    values = np.asarray(values, np.float64)
    return np.where(values >= 0, _magnitude_down(np.abs(values)), -_magnitude_up(np.abs(values)))


def round_up(values: np.ndarray) -> np.ndarray:
    """The smallest number of three significant digits that is not below each value."""
    return -round_down(-np.asarray(values, np.float64))


@dataclass
class Tally:
    """How many documents have which value; a weight is what a document counts for, W of them."""

    side: Side
    weights: int
    at: dict[float, np.ndarray] = field(default_factory=dict)
    """the sum of the weights at each value of the grid"""

    def add(self, values_D: np.ndarray, weights_DW: np.ndarray) -> None:
        """Count documents; none of the values is NaN."""
        grid_D = round_down(values_D) if self.side == "minimum" else round_up(values_D)
        grid_G, group_D = np.unique(grid_D + 0.0, return_inverse=True)  # + 0.0: no negative zero
        sums_GW = np.zeros((len(grid_G), self.weights), np.int64)
        np.add.at(sums_GW, group_D, weights_DW)
        for value, sums_W in zip(grid_G.tolist(), sums_GW, strict=True):
            self.at[value] = self.at.get(value, 0) + sums_W

    def sorted(self) -> tuple[np.ndarray, np.ndarray]:
        """The G values of the grid, ascending, and the weights at each, (G, W)."""
        grid = sorted(self.at)
        sums_GW = np.array([self.at[value] for value in grid], np.int64).reshape(len(grid), self.weights)
        return np.array(grid), sums_GW

    def kept(self) -> tuple[np.ndarray, np.ndarray]:
        """The G values of the grid as thresholds, and the weights that each keeps, (G, W)."""
        grid_G, sums_GW = self.sorted()
        if self.side == "minimum":
            return grid_G, sums_GW[::-1].cumsum(axis=0)[::-1]
        return grid_G, sums_GW.cumsum(axis=0)


def choose_thresholds(grid_G: np.ndarray, documents_G: np.ndarray, most: int) -> np.ndarray:
    """Indices of at most ``most`` finite thresholds: half by quantiles of documents, half evenly spaced."""
    finite = np.flatnonzero(np.isfinite(grid_G))
    if len(finite) <= most:
        return finite
    half = most // 2
    below_F = documents_G[finite].cumsum()
    by_documents = np.searchsorted(below_F, np.linspace(0, below_F[-1], half))
    grid_F = grid_G[finite]
    by_value = np.searchsorted(grid_F, np.linspace(grid_F[0], grid_F[-1], half))
    return finite[np.union1d(by_documents, by_value)]


def quantile(grid_G: np.ndarray, documents_G: np.ndarray, share: float) -> float:
    """The smallest value of the grid that leaves at least this share of the documents at or below it."""
    below_G = documents_G.cumsum()
    return float(grid_G[np.searchsorted(below_G, share * below_G[-1])])


def _magnitude_down(values: np.ndarray) -> np.ndarray:
    digits, power = _digits(values)
    return np.where(values < _POWERS[0], 0.0, np.where(values < _POWERS[-1], _number(digits, power), values))


def _magnitude_up(values: np.ndarray) -> np.ndarray:
    digits, power = _digits(values)
    up = np.where(_number(digits, power) < values, _number(digits + 1, power), _number(digits, power))
    small = np.where(values > 0, _POWERS[0], 0.0)
    return np.where(values < _POWERS[0], small, np.where(values < _POWERS[-1], up, values))


def _digits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Three leading digits (100 … 999) of each value and the power of ten that they count."""
    within = np.clip(values, _POWERS[0], np.nextafter(_POWERS[-1], 0))
    power = np.searchsorted(_POWERS, within, side="right") - 1 + _SMALLEST - 2
    digits = np.clip(np.floor(_number(within, -power)), 100, 999)
    digits = np.where(_number(digits, power) > within, digits - 1, digits)
    digits = np.where((digits < 999) & (_number(digits + 1, power) <= within), digits + 1, digits)
    return digits, power


def _number(digits: np.ndarray, power: np.ndarray) -> np.ndarray:
    """digits · 10^power, rounded once: the number that a person's decimal fraction is read as."""
    tens = _TENS[np.abs(power)]
    return np.where(power < 0, digits / tens, digits * tens)
