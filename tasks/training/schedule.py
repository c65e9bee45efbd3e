from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from tasks.parameters import StageParams


class ScheduleParams(StageParams):
    """How the learning rate goes over the steps, as a share of its peak."""

    kind: Literal["cosine", "linear", "wsd", "constant"] = "cosine"
    warmup_steps: int = Field(
        default=0, ge=0, description="steps of linear rise; the peak is reached at the last"
    )
    decay_ratio: float = Field(
        default=0.2, gt=0, le=1, description="wsd: share of the steps, the last ones, that fall"
    )
    min_ratio: float = Field(default=0.1, ge=0, le=1, description="share of the peak at the last step")


def learning_rate_ratio(schedule: ScheduleParams, step: int, steps: int) -> float:
    """Share of the peak learning rate that step ``step`` of 1 … ``steps`` takes: a pure function.

    Warm-up rises by equal amounts to 1 at step ``warmup_steps``. After it, cosine (Loshchilov and Hutter
    2017, SGDR, equation 5, one period) and linear fall to ``min_ratio`` at step ``steps``. wsd stays at the
    peak and falls linearly over the last ``decay_ratio`` of all steps (Hägele et al. 2024, arXiv:2405.18392,
    section 3), so that a run can be lengthened from where it was before the fall. constant stays.

    Raises:
        ValueError: if ``step`` is not one of 1 … ``steps``.
    """
    if not 1 <= step <= steps:
        raise ValueError(f"step {step} is not one of 1 … {steps}")
    if step <= schedule.warmup_steps:
        return step / schedule.warmup_steps
    if schedule.kind == "constant":
        return 1.0
    begin = schedule.warmup_steps
    if schedule.kind == "wsd":
        begin = max(begin, steps - max(round(schedule.decay_ratio * steps), 1))
        if step <= begin:
            return 1.0
    progress = (step - begin) / max(steps - begin, 1)
    fall = (1 + math.cos(math.pi * progress)) / 2 if schedule.kind == "cosine" else 1 - progress
    return schedule.min_ratio + (1 - schedule.min_ratio) * fall
