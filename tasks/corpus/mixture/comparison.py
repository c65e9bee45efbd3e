"""What was asked of a mixture against what it gives, value by value, with the reasons where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tasks.corpus.mixture.plan import Group, Planned
from tasks.corpus.mixture.results import MixedGroup

TOLERANCE = 0.005
"""Shares that differ by less are the same: documents are drawn whole."""


@dataclass(frozen=True)
class Comparison:
    """One value, or one group where several columns are looked at; shares are of training text, 0 to 1."""

    group: Group
    before: float | None
    """None where there was no mixture"""
    asked: float
    given: float
    epochs: float
    """how often its text is seen, on average"""
    available_bytes: int
    because: str
    """why less or more is given than was asked; empty where it is not"""


def expected(planned: Sequence[Planned]) -> list[MixedGroup]:
    """What a plan gives if every draw meets its mean: the report's groups before there is a report."""
    total = sum(group.size * group.epochs for group in planned) or 1.0
    return [
        MixedGroup(
            group=list(group.group),
            asked=group.asked,
            given=group.size * group.epochs / total,
            epochs=group.epochs,
            available_bytes=group.size,
            bytes=round(group.size * group.epochs),
        )
        for group in planned
    ]


def compare(
    groups: Iterable[MixedGroup],
    columns: Sequence[str],
    shown: Sequence[str],
    *,
    weights: Mapping[str, float],
    maximum_epochs: float,
    budget_bytes: float,
    before: Mapping[Group, int] | None,
) -> list[Comparison]:
    """Hold what was asked against what is given.

    Args:
        groups: of a report, or of a plan (`expected`).
        columns: those by which they are grouped.
        shown: those of them by whose values the comparison is made.
        weights: the shares that were asked for by value, where ``shown`` is one column.
        before: bytes of training text of the mixture before, by the values of ``shown``.
    """
    depths = [columns.index(column) for column in shown]
    parts: dict[Group, list[MixedGroup]] = {}
    for group in groups:
        parts.setdefault(tuple(group.group[depth] for depth in depths), []).append(group)
    earlier = sum(before.values()) if before else 0
    above = [column for column in columns[: min(depths)] if column not in shown]
    together = sum(weights.get(value[0], 0.0) for value in parts)
    all_named = bool(weights) and all(value[0] in weights for value in parts)
    compared = []
    for value, its in sorted(parts.items()):
        planned = sum(group.asked for group in its)
        asked = weights.get(value[0], planned) if len(shown) == 1 else planned
        reasons = []
        if abs(planned - asked) > TOLERANCE and all_named and abs(together - 1) > TOLERANCE:
            reasons.append(f"the weights name every value and are {together:g} together")
        elif abs(planned - asked) > TOLERANCE:
            reasons.append(f"a share within each {' and '.join(above) or 'group'}, not all of which have it")
        available = sum(group.available_bytes for group in its)
        seen = sum(group.available_bytes * group.epochs for group in its)
        given = sum(group.given for group in its)
        reasons += _limits(its, planned, given, maximum_epochs, budget_bytes)
        compared.append(
            Comparison(
                group=value,
                before=before.get(value, 0) / earlier if before and earlier else None,
                asked=asked,
                given=given,
                epochs=seen / available if available else max(group.epochs for group in its),
                available_bytes=available,
                because="; ".join(reasons),
            )
        )
    return compared


def _limits(
    its: Sequence[MixedGroup], asked: float, given: float, maximum_epochs: float, budget_bytes: float
) -> list[str]:
    """Why the given share is not the one that the levels ask for."""
    if abs(given - asked) <= TOLERANCE:
        return []
    available = sum(group.available_bytes for group in its)
    if not available:
        return ["all its documents are held out for validation"]
    at_most = [group for group in its if group.asked > 0 and group.epochs >= maximum_epochs * (1 - 1e-6)]
    if given < asked and at_most:
        if len(its) > 1:
            return [
                f"{len(at_most)} of its {len(its)} groups would be seen more than {maximum_epochs:g} times"
            ]
        needed = asked * budget_bytes / available
        return [f"it would be seen {needed:.1f} times, and maximum_epochs is {maximum_epochs:g}"]
    if given > asked:
        return ["takes over what others cannot give"]
    return ["documents are drawn whole"]
