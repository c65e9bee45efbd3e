"""Means with their standard errors, and what stands in their place when there is nothing to average."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

NoData = Literal["no data"]
NO_DATA: NoData = "no data"


class Estimate(BaseModel):
    """A mean over ``observations`` independent units; the error is None where one unit says nothing of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: float
    standard_error: float | None
    observations: int


def mean(values_N: np.ndarray) -> Estimate | NoData:
    """The mean of N independent values and its standard error, s/√N; no data for none."""
    return ratio(values_N, np.ones(len(values_N)))


def ratio(sums_N: np.ndarray, counts_N: np.ndarray) -> Estimate | NoData:
    """Σ sums / Σ counts over N independent units, such as the loss per token over documents.

    The standard error is that of a ratio estimator (Cochran 1977, Sampling Techniques, equation 6.10): the
    units are independent, what is counted within them is not. No data where nothing was counted.
    """
    units, total = len(sums_N), float(np.sum(counts_N, dtype=np.float64))
    if units == 0 or total == 0:
        return NO_DATA
    value = float(np.sum(sums_N, dtype=np.float64)) / total
    error = None
    if units > 1:
        residuals_N = np.asarray(sums_N, np.float64) - value * np.asarray(counts_N, np.float64)
        error = significant(float(np.sqrt(np.sum(residuals_N**2) * units / (units - 1)) / total))
    return Estimate(value=significant(value), standard_error=error, observations=units)


def significant(value: float, digits: int = 7) -> float:
    """Round to the digits that fp32 arithmetic can vouch for, so that reports do not carry noise."""
    return float(f"{value:.{digits}g}")
