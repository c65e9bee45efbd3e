"""What is drawn for review: which documents, for which rule, and how many they stand for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.parameters import StageParams
from tasks.records import order_key
from tasks.stage import StageError

KEPT_RULE = "kept"
"""Stands where the name of a rule would, for documents that no rule removed."""


class ReviewError(StageError):
    """What is needed for a review is missing or broken; the message says what would be right."""


class ReviewParams(StageParams):
    """How many documents are drawn, and how much of them is shown."""

    removed: int = Field(default=50, ge=0, description="documents of each rule that removed some")
    kept: int = Field(default=200, ge=0, description="documents that no rule removed")
    seed: int = 1
    by_source: bool = Field(default=False, description="whether each source has its share, however small")
    text_characters: int = Field(
        default=6000, ge=200, le=100_000, description="of a text; head and tail of a longer one"
    )


class RuleSample(BaseModel):
    """The documents drawn for one rule.

    A stratum is a source, or the one stratum ``""`` where sources were not told apart.
    """

    model_config = ConfigDict(extra="forbid")

    strata: dict[str, int]
    """documents that the rule removed, by stratum"""
    drawn: dict[str, str]
    """id → stratum"""

    @property
    def population(self) -> int:
        """Documents that the rule removed."""
        return sum(self.strata.values())


class Sample(BaseModel):
    """What was drawn, without texts: it may be shown to anybody and kept in version control."""

    model_config = ConfigDict(extra="forbid")

    params: ReviewParams
    rules: dict[str, RuleSample]
    """by stage and rule, as ``clean/too_short``, and `KEPT_RULE`"""

    @property
    def name(self) -> str:
        """Twelve hexadecimal digits that depend on what was drawn."""
        drawn = self.model_dump(mode="json", include={"rules"})
        return order_key(json.dumps(drawn, sort_keys=True))[:12]

    def drawn_for(self) -> dict[str, list[str]]:
        """For each document the rules that it was drawn for."""
        found: dict[str, list[str]] = {}
        for rule, sample in self.rules.items():
            for name in sample.drawn:
                found.setdefault(name, []).append(rule)
        return found


def allot(ranked: Mapping[str, Iterable[tuple[int, str]]], size: int) -> dict[str, str]:
    """``size`` ids from ranked strata: the first of each stratum, then the second of each … → id → stratum.

    So every stratum has an equal share, and what a small one cannot fill goes to the others.
    """
    rounds = zip_longest(*([(rank, name, key) for rank, name in ranked[key]] for key in sorted(ranked)))
    drawn: dict[str, str] = {}
    for one_of_each in rounds:
        for _, name, stratum in sorted(each for each in one_of_each if each):
            if len(drawn) == size:
                return drawn
            drawn[name] = stratum
    return drawn


def read_sample(path: Path) -> Sample:
    """Read ``sample.json``.

    Raises:
        ReviewError: it is missing or broken.
    """
    try:
        return Sample.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise ReviewError(f"{path} does not exist: `gristmill review` draws a sample") from None
    except ValidationError as error:
        first: Any = error.errors(include_url=False)[0]
        raise ReviewError(
            f"{path} is broken: `{'.'.join(map(str, first['loc']))}`: {first['msg']}. "
            "Restore it from version control, or draw a sample anew"
        ) from None


def sample_json(sample: Sample) -> str:
    """The sample as it is written."""
    return json.dumps(sample.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"
