"""Other shares for a mixture: a change of one level, or the shares of a reference. Nothing is read or run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from tasks.corpus.mixture.plan import By, Level, check_shares


class MixtureChange(BaseModel):
    """What is to be different in the next mixture; what is not given stays."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    by: By | None = Field(
        default=None, title="Level", description="The column whose values get other shares."
    )
    weights: dict[str, float] = Field(
        default={},
        title="Weights",
        description='Value and share, as in {"law": 0.3}, 0 to 1, together at most 1; they replace all '
        "weights of the level. Values that are not named share what is left.",
    )
    temperature: float | None = Field(
        default=None,
        gt=0,
        title="Temperature",
        description="Of values without a weight: shares go as size^(1/temperature); 1: by size.",
    )
    maximum_epochs: float | None = Field(
        default=None, gt=0, title="Maximum of epochs", description="No document is seen more often."
    )
    tokens: int | None = Field(
        default=None, ge=1, title="Tokens", description="Size of the mixture. Empty: as it was."
    )

    @field_validator("weights")
    @classmethod
    def _are_shares(cls, weights: dict[str, float]) -> dict[str, float]:
        return check_shares(weights)

    @model_validator(mode="after")
    def _says_what(self) -> MixtureChange:
        changes_a_level = self._changes_a_level()
        if changes_a_level and self.by is None:
            raise ValueError("weights, a temperature or a reference need the level that they are for: `by`")
        if self.by is not None and not changes_a_level:
            raise ValueError(f"what of the level {self.by}? Give weights, a temperature or a reference")
        if not changes_a_level and self.maximum_epochs is None and self.tokens is None:
            raise ValueError(
                "nothing to change: give a level with weights, a temperature or a reference, "
                "a maximum of epochs, or a number of tokens"
            )
        return self

    def _changes_a_level(self) -> bool:
        return bool(self.weights) or self.temperature is not None


def rebalanced(levels: Iterable[Level], change: MixtureChange) -> list[Level]:
    """The levels of a mixture after a change; all but the one that it names stay as they are.

    A level that is there keeps its place, and of weights and temperature what is not given. One that is not
    comes first, so that its shares are those of the whole mixture.
    """
    levels = list(levels)
    if change.by is None:
        return levels
    before = next((level for level in levels if level.by == change.by), Level(by=change.by))
    after = Level(
        by=change.by,
        weights=change.weights or before.weights,
        temperature=before.temperature if change.temperature is None else change.temperature,
    )
    if before not in levels:
        return [after, *levels]
    return [after if level.by == change.by else level for level in levels]


def shares_like(counts: Mapping[str, float], among: Collection[str] | None = None) -> dict[str, float]:
    """Weights with the proportions of a reference: its documents, bytes or tokens by value.

    Args:
        counts: what the reference holds of each value, in any unit.
        among: the values that can be given; those of the reference that are not among them leave their part
            to the others, and those that the reference lacks get 0.

    Returns:
        Value → share; the shares are 1 together.

    Raises:
        ValueError: a count is negative or no number, or nothing is left to share out.
    """
    for value, count in counts.items():
        if not (math.isfinite(count) and count >= 0):
            raise ValueError(f"the reference's count of {value} must be 0 or more, not {count:g}")
    values = sorted(counts if among is None else among)
    total = math.fsum(counts.get(value, 0) for value in values)
    if not total > 0:
        held = ", ".join(sorted(value for value, count in counts.items() if count > 0)) or "nothing"
        raise ValueError(f"the reference has nothing of {', '.join(values) or 'any value'}: it holds {held}")
    return {value: counts.get(value, 0) / total for value in values}
