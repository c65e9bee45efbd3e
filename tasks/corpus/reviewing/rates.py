"""How often each rule removes what should stay, as reviewers measured it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tasks.corpus.reviewing.sample import KEPT_RULE, RuleSample, Sample
from tasks.corpus.reviewing.verdicts import Label, Verdict, labels, unknown_verdicts

NORMAL_QUANTILE = 1.959964
"""of 97.5 %: intervals cover 95 %"""


@dataclass(frozen=True)
class Proportion:
    """A share with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RuleRate:
    """What reviewers found of one rule."""

    rule: str
    population: int
    """documents that the rule removed"""
    drawn: int
    reviewed: int
    """of those drawn, judged right or wrong"""
    wrong: int
    unsure: int
    rate: Proportion | None
    """share of wrong ones in the population; None where none was reviewed"""

    @property
    def wrong_in_corpus(self) -> Proportion | None:
        """Documents that the rule got wrong, by that rate."""
        if self.rate is None:
            return None
        return Proportion(
            *(self.population * part for part in (self.rate.value, self.rate.low, self.rate.high))
        )


@dataclass(frozen=True)
class ReviewRates:
    """All rules that removed documents, by name, and the documents that were kept."""

    rules: list[RuleRate]
    kept: RuleRate | None
    """here wrong is what should have been removed"""
    reviewers: int
    unknown: list[Verdict]
    """verdicts of documents that were not drawn for their rule; they count nowhere"""


def false_removal_rates(sample: Sample, verdicts: Iterable[Verdict]) -> ReviewRates:
    """The rate of false removals of each rule, and of the kept documents those that should have gone.

    A document counts for a rule only if it was drawn for it: it may have failed others as well, and those
    have samples of their own. Unsure ones are told apart and count on neither side.
    """
    verdicts = list(verdicts)
    unknown = unknown_verdicts(sample, verdicts)
    known = [verdict for verdict in verdicts if verdict not in set(unknown)]
    by_rule: defaultdict[str, dict[str, Label]] = defaultdict(dict)
    for (rule, name), label in labels(known).items():
        by_rule[rule][name] = label
    rates = {rule: _rate(rule, drawn, by_rule[rule]) for rule, drawn in sample.rules.items()}
    kept = rates.pop(KEPT_RULE, None)
    reviewers = len({verdict.reviewer for verdict in known})
    return ReviewRates([rates[rule] for rule in sorted(rates)], kept, reviewers, unknown)


def wilson(share: float, size: float) -> Proportion:
    """The score interval of a share found in ``size`` draws (Wilson, JASA 1927).

    It stays within [0, 1] and has a width where the share is 0 or 1. ``size`` need not be whole.
    """
    z2 = NORMAL_QUANTILE**2
    centre = (share + z2 / (2 * size)) / (1 + z2 / size)
    half = NORMAL_QUANTILE / (1 + z2 / size) * math.sqrt(share * (1 - share) / size + z2 / (4 * size**2))
    return Proportion(share, min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)))


def _rate(rule: str, sample: RuleSample, given: dict[str, Label]) -> RuleRate:
    counts = Counter(given.values())
    reviewed = counts["right"] + counts["wrong"]
    rate = _weighted(sample, given) if reviewed else None
    return RuleRate(
        rule, sample.population, len(sample.drawn), reviewed, counts["wrong"], counts["unsure"], rate
    )


def _weighted(sample: RuleSample, given: dict[str, Label]) -> Proportion:
    """Each stratum's share, weighted by its documents; one in which nothing was judged has no say.

    A judged document stands for w = (documents / judged ones) of its stratum. Weights cost precision; the
    effective size is (Σw)² / Σw² (Kish, Survey Sampling, 1965); with equal ones it is the number judged.
    """
    judged: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for name, label in given.items():
        judged[sample.drawn[name]] += label != "unsure"
        wrong[sample.drawn[name]] += label == "wrong"
    strata = [stratum for stratum, count in judged.items() if count]
    total = sum(sample.strata[stratum] for stratum in strata)
    share = sum(sample.strata[stratum] * wrong[stratum] / judged[stratum] for stratum in strata) / total
    size = total**2 / sum(sample.strata[stratum] ** 2 / judged[stratum] for stratum in strata)
    return wilson(min(1.0, share), size)
