"""Rules held against the signals of a whole batch at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.corpus.policies.rules import Rule
from tasks.records import Finding


@dataclass(frozen=True)
class Decisions:
    """What R rules say of D documents."""

    names: list[str]
    values_DR: np.ndarray
    """what was measured; NaN where the rule does not judge the document, or nothing was measured"""
    minimum_DR: np.ndarray
    maximum_DR: np.ndarray
    """the bounds; NaN where there is none"""
    signals: list[list[str]]
    """the signal's name for each scope and rule"""
    scope_D: np.ndarray

    @property
    def failed_DR(self) -> np.ndarray:
        """Whether a document fails a rule; a value that is NaN fails none."""
        return (self.values_DR < self.minimum_DR) | (self.values_DR > self.maximum_DR)

    def findings(self, document: int, failed_R: np.ndarray) -> list[Finding]:
        """A finding for each rule that a document fails, in the order of the rules."""
        found = []
        for rule in np.flatnonzero(failed_R):
            value = float(self.values_DR[document, rule])
            low = value < self.minimum_DR[document, rule]
            bound = float((self.minimum_DR if low else self.maximum_DR)[document, rule])
            signal = self.signals[self.scope_D[document]][rule]
            side = "below the minimum" if low else "above the maximum"
            found.append(Finding(self.names[rule], value, bound, f"{signal} is {side}"))
        return found


Scope = tuple[str, str, str]
"""A document's source, kind and language: all that a rule's scope asks for."""


def decide(
    rules: Sequence[Rule], signals_DS: np.ndarray, names: Sequence[str], scopes: Sequence[Scope]
) -> Decisions:
    """Hold every rule against every document.

    ``names`` are those of the S columns of ``signals_DS``; a rule whose signal is not among them decides, and
    fails nothing. Rules of one name are one rule: for each document the last of them whose scope has it
    decides.
    """
    order = list(dict.fromkeys(rule.name for rule in rules))
    different = list(dict.fromkeys(scopes))
    number = {scope: i for i, scope in enumerate(different)}
    scope_D = np.array([number[scope] for scope in scopes], np.int64)
    column = {name: number for number, name in enumerate(names)}
    bounds = [_bounds(rules, order, scope) for scope in different]
    minimum_TR = np.array([[_or_nan(rule.minimum) if rule else np.nan for rule in row] for row in bounds])
    maximum_TR = np.array([[_or_nan(rule.maximum) if rule else np.nan for rule in row] for row in bounds])
    column_TR = np.array(
        [[column.get(rule.signal, -1) if rule and rule.signal else -1 for rule in row] for row in bounds]
    )
    shape = (len(scopes), len(order))
    if not scopes or not order:
        empty = np.zeros(shape)
        return Decisions(order, empty, empty, empty, [], scope_D)
    column_DR = column_TR[scope_D]
    values_DR = np.take_along_axis(signals_DS, np.maximum(column_DR, 0), axis=1)
    values_DR = np.where(column_DR < 0, np.nan, values_DR)
    told = [[(rule.signal or "") if rule else "" for rule in row] for row in bounds]
    return Decisions(order, values_DR, minimum_TR[scope_D], maximum_TR[scope_D], told, scope_D)


def deciding(rules: Sequence[Rule], scope: Scope) -> dict[str, Rule]:
    """For each name the entry that decides in a scope, which may be off."""
    return {rule.name: rule for rule in rules if rule.judges(*scope)}


def _bounds(rules: Sequence[Rule], order: list[str], scope: Scope) -> list[Rule | None]:
    """For each name the entry that decides in a scope; None where none does, or it is off."""
    entries = deciding(rules, scope)
    return [None if (rule := entries.get(name)) is None or rule.off else rule for name in order]


def _or_nan(bound: float | None) -> float:
    return np.nan if bound is None else bound
