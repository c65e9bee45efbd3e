"""Rules that decide on measurements: every rule that a document fails is told, with value and bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field, model_validator

from tasks.records import Finding
from tasks.stage import StageParams


class Rule(StageParams):
    """A bound on one signal, for the documents it applies to."""

    name: str = Field(pattern=r"^[a-z0-9_]+$", description="as it stands in the ledger")
    signal: str = Field(description="a measurement of tasks/corpus/signals.py, or language_score")
    minimum: float | None = None
    maximum: float | None = None
    except_kinds: list[str] = Field(default=[], description="kinds of document that the rule does not judge")
    only_languages: list[str] | None = Field(default=None, description="languages that it judges; empty: all")

    @model_validator(mode="after")
    def _has_a_bound(self) -> Rule:
        if self.minimum is None and self.maximum is None:
            raise ValueError(f"rule {self.name} needs a minimum or a maximum")
        return self


def failed(rules: Iterable[Rule], signals: Mapping[str, float], kind: str, language: str) -> list[Finding]:
    """The findings of every rule that a document fails, in the order of the rules.

    Raises:
        KeyError: a rule speaks of a signal that was not measured.
    """
    findings: list[Finding] = []
    for rule in rules:
        if kind in rule.except_kinds or (rule.only_languages and language not in rule.only_languages):
            continue
        value = signals[rule.signal]
        if rule.minimum is not None and value < rule.minimum:
            findings.append(Finding(rule.name, value, rule.minimum, f"{rule.signal} is below the minimum"))
        elif rule.maximum is not None and value > rule.maximum:
            findings.append(Finding(rule.name, value, rule.maximum, f"{rule.signal} is above the maximum"))
    return findings
