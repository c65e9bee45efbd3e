"""How often each group of documents is seen: from shares asked for, level by level, to epochs.

Temperature: Conneau et al., XLM-R, 2020, section 3.1 (shares of languages as size^(1/T)); a cap on epochs:
Muennighoff et al., Scaling Data-Constrained Language Models, 2023 (four are nearly as good as new data).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, field_validator

from tasks.parameters import StageParams
from tasks.stage import StageError

By = Literal["source", "kind", "domain", "language", "license"]
Group = tuple[str, ...]
"""The values of a group's documents, one for each level."""


class Level(StageParams):
    """How documents are shared out among the values of one column, within each group of the level above."""

    by: By
    weights: dict[str, float] = Field(
        default={}, description="shares of values, 0 to 1; what is left is for those that are not named"
    )
    temperature: float = Field(
        default=1.0,
        gt=0,
        description="of values that are not named: shares go as size^(1/temperature); 1: by size",
    )

    @field_validator("weights")
    @classmethod
    def _are_shares(cls, weights: dict[str, float]) -> dict[str, float]:
        return check_shares(weights)


@dataclass(frozen=True)
class Planned:
    """What becomes of one group."""

    group: Group
    size: int
    """bytes of text that there are"""
    asked: float
    """its share of the mixture by weights and temperatures"""
    epochs: float
    """how often it is seen; the cap included"""


def check_shares(weights: dict[str, float]) -> dict[str, float]:
    """The weights, if they can be shares of one whole.

    Raises:
        ValueError: one is not from 0 to 1, or they are more than 1 together.
    """
    for value, weight in weights.items():
        if not 0 <= weight <= 1:
            raise ValueError(f"the weight of {value} must be from 0 to 1, not {weight:g}")
    if sum(weights.values()) > 1 + 1e-9:
        raise ValueError(f"weights must not be more than 1 together, but are {sum(weights.values()):g}")
    return weights


def plan(
    sizes: Mapping[Group, int], levels: Iterable[Level], budget: float | None, maximum_epochs: float
) -> list[Planned]:
    """Share out ``budget`` bytes (None: as much as there is) among the groups.

    ``sizes`` are the bytes of every group, whose values are those of ``levels``. Where a group would be seen
    more than ``maximum_epochs`` times, what it cannot give is shared among the others as they were asked.

    Raises:
        StageError: a weight names a value that no document has.
    """
    levels = list(levels)
    for depth, level in enumerate(levels):
        present = {group[depth] for group in sizes}
        for value in level.weights:
            if value not in present:
                there = ", ".join(sorted(present))
                raise StageError(f"mix.levels: no documents of {level.by} `{value}`; there are {there}")
    # A group that is all held out has no text to train on, but it was asked for.
    asked = _shares({group: max(1, size) for group, size in sizes.items()}, levels, 0)
    total = float(sum(sizes.values())) if budget is None else budget
    epochs = _capped(sizes, asked, total, maximum_epochs)
    return [Planned(group, sizes[group], asked[group], epochs[group]) for group in sorted(sizes)]


def fixed_epochs(sizes: Mapping[Group, int], epochs: Mapping[str, float]) -> list[Planned]:
    """The plan that a user gives by hand: the epochs of sources, 1 where not named.

    Raises:
        StageError: a source is named of which there are no documents.
    """
    present = [group[0] for group in sizes]
    for source in epochs:
        if source not in present:
            raise StageError(
                f"mix.epochs: no documents of a source `{source}`; there are {', '.join(sorted(present))}"
            )
    bytes_of = {group: size * epochs.get(group[0], 1.0) for group, size in sizes.items()}
    total = sum(bytes_of.values()) or 1.0
    return [
        Planned(group, sizes[group], bytes_of[group] / total, epochs.get(group[0], 1.0))
        for group in sorted(sizes)
    ]


def _shares(sizes: Mapping[Group, int], levels: list[Level], depth: int) -> dict[Group, float]:
    """Shares of the groups, 1 together."""
    if depth == len(levels):
        return dict.fromkeys(sizes, 1.0)
    within: dict[str, dict[Group, int]] = {}
    for group, size in sizes.items():
        within.setdefault(group[depth], {})[group] = size
    of_value = _level_shares({value: sum(its.values()) for value, its in within.items()}, levels[depth])
    return {
        group: of_value[value] * share
        for value, its in within.items()
        for group, share in _shares(its, levels, depth + 1).items()
    }


def _level_shares(sizes: Mapping[str, int], level: Level) -> dict[str, float]:
    """Shares of the values of a level, 1 together (0 each if all weights are 0)."""
    named = {value: level.weights[value] for value in sizes if value in level.weights}
    largest = max(sizes.values())  # shares are of sizes to each other: powers of these stay in range
    others = {
        value: (size / largest) ** (1 / level.temperature)
        for value, size in sizes.items()
        if value not in named
    }
    rest = 1 - sum(level.weights.values()) if others else 0.0
    whole = sum(others.values())
    shares = named | {value: rest * size / whole if whole else 0.0 for value, size in others.items()}
    # What is named but not here, in another group of the level above, leaves its share to those that are.
    together = sum(shares.values())
    return {value: share / together if together else 0.0 for value, share in shares.items()}


def _capped(
    sizes: Mapping[Group, int], asked: Mapping[Group, float], total: float, maximum_epochs: float
) -> dict[Group, float]:
    epochs = {group: float(size == 0 and asked[group] > 0) for group, size in sizes.items()}
    open_groups = {group for group in sizes if asked[group] > 0 and sizes[group] > 0}
    while open_groups:
        share = sum(asked[group] for group in open_groups)
        wanted = {group: total * asked[group] / share / sizes[group] for group in open_groups}
        capped = {group for group in open_groups if wanted[group] > maximum_epochs}
        if not capped:
            return epochs | wanted
        for group in capped:
            epochs[group] = maximum_epochs
            total -= maximum_epochs * sizes[group]
        open_groups -= capped
        total = max(0.0, total)
    return epochs
