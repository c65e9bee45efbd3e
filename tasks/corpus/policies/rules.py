"""A rule: a bound on one signal, for the documents that it judges."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from tasks.parameters import StageParams

Kind = Literal["web", "book", "code", "dialogue", "reference"]
"""The kinds of document that a source may declare."""

LanguageCode = Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]
"""An ISO 639 code; ``und`` and ``zxx`` too. Another word for a language would match no document."""


class Rule(StageParams):
    """A bound on one signal.

    Several entries may bear one name: the last whose scope has the document decides. So a preset's rule is
    changed for a source, a kind or a language by one more entry of its name, which states both bounds anew.
    """

    name: str = Field(pattern=r"^[a-z0-9_]+$", description="as it stands in the ledger")
    signal: str | None = Field(
        default=None, description="a signal (docs/signals.md); empty: that of the entry before of this name"
    )
    minimum: float | None = Field(default=None, allow_inf_nan=False, description="a smaller value fails")
    maximum: float | None = Field(default=None, allow_inf_nan=False, description="a larger value fails")
    off: bool = Field(default=False, description="the rule does not judge the documents of this scope")
    only_sources: list[str] | None = Field(
        default=None, min_length=1, description="sources that it judges; null: all"
    )
    only_kinds: list[Kind] | None = Field(
        default=None, min_length=1, description="kinds that it judges; null: all"
    )
    except_kinds: list[Kind] = Field(default=[], description="kinds that it does not judge")
    only_languages: list[LanguageCode] | None = Field(
        default=None, min_length=1, description="languages that it judges; null: all"
    )
    except_languages: list[LanguageCode] = Field(default=[], description="languages that it does not judge")

    @model_validator(mode="after")
    def _says_something(self) -> Rule:
        low, high = self.minimum, self.maximum
        if self.off and (low is not None or high is not None):
            raise ValueError(f"rule {self.name} is off and has a bound: say one of both")
        if not self.off and low is None and high is None:
            raise ValueError(f"rule {self.name} needs a minimum or a maximum, or `off: true`")
        if low is not None and high is not None and low > high:
            raise ValueError(f"rule {self.name}: no value is both at least {low} and at most {high}")
        for what, only, but in (
            ("kind", self.only_kinds, self.except_kinds),
            ("language", self.only_languages, self.except_languages),
        ):
            if only is not None and set(only) <= set(but):
                raise ValueError(
                    f"rule {self.name} judges no document: every {what} of only_{what}s is in except_{what}s"
                )
        return self

    def judges(self, source: str, kind: str, language: str) -> bool:
        """Whether a document is in the rule's scope."""
        return (
            (self.only_sources is None or source in self.only_sources)
            and (self.only_kinds is None or kind in self.only_kinds)
            and kind not in self.except_kinds
            and (self.only_languages is None or language in self.only_languages)
            and language not in self.except_languages
        )


def completed(rules: list[Rule], signals: frozenset[str] | set[str]) -> list[Rule]:
    """The rules with the signal of each filled in from the entry before of its name.

    Raises:
        ValueError: a rule speaks of a signal that is not measured, or of none.
    """
    known: dict[str, str] = {}
    found = []
    for rule in rules:
        signal = rule.signal or known.get(rule.name)
        if signal is None:
            raise ValueError(f"rule {rule.name}: `signal` is missing, and no entry before has this name")
        if signal not in signals:
            from tasks.parameters import nearest

            raise ValueError(f"rule {rule.name}: no signal `{signal}`; {nearest(signal, sorted(signals))}")
        known[rule.name] = signal
        found.append(rule.model_copy(update={"signal": signal}))
    return found
