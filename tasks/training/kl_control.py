"""The weight of the KL penalty from update to update."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tasks.parameters import StageParams


class FixedKl(StageParams):
    """The same coefficient all the time."""

    kind: Literal["fixed"] = "fixed"
    coefficient: float = Field(default=0.05, ge=0)


class AdaptiveKl(StageParams):
    """A coefficient that steers the KL divergence of a response towards a target."""

    kind: Literal["adaptive"] = "adaptive"
    coefficient: float = Field(default=0.05, gt=0, description="the first one")
    target: float = Field(default=6.0, gt=0, description="nats of a response")
    horizon: float = Field(default=10000.0, gt=0, description="responses; the longer, the slower it moves")


KlControl = Annotated[FixedKl | AdaptiveKl, Field(discriminator="kind")]


def next_coefficient(control: FixedKl | AdaptiveKl, coefficient: float, kl: float, responses: int) -> float:
    """The coefficient after an update with mean divergence ``kl`` (nats of a response) over ``responses``.

    Adaptive: β ← β · (1 + e · n / horizon) with e = clip(KL / target − 1, −0.2, 0.2) (Ziegler et al. 2019,
    Fine-Tuning Language Models from Human Preferences, section 2.2).
    """
    if isinstance(control, FixedKl):
        return coefficient
    error = min(max(kl / control.target - 1, -0.2), 0.2)
    return coefficient * (1 + error * responses / control.horizon)
