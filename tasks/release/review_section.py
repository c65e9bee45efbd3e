"""What people who reviewed a sample found of the rules, for the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.corpus.reviewing.rates import Proportion, ReviewRates, false_removal_rates
from tasks.corpus.reviewing.sample import read_sample
from tasks.corpus.reviewing.verdicts import read_verdicts
from tasks.release.ledgers import LedgerSummary


@dataclass(frozen=True)
class Review:
    """The measured rates; ``changed`` has the rules that now remove another number of documents."""

    rates: ReviewRates
    changed: dict[str, int]


def read_review(reviews: Path, ledgers: Mapping[str, LedgerSummary]) -> Review | None:
    """The verdicts of ``reviews`` and what follows from them; None where there are none.

    Raises:
        StageError: naming the file that is broken, and its line.
    """
    path = reviews / "verdicts.jsonl"
    verdicts = read_verdicts(path) if path.exists() else []
    if not verdicts:
        return None
    rates = false_removal_rates(read_sample(reviews / "sample.json"), verdicts)
    now = {
        f"{stage}/{rule.rule}": rule.documents
        for stage, ledger in ledgers.items()
        for rule in ledger.rules
        if not rule.kept
    }
    changed = {
        rate.rule: now.get(rate.rule, 0) for rate in rates.rules if now.get(rate.rule, 0) != rate.population
    }
    return Review(rates, changed)


def percentage(share: Proportion | None) -> str | None:
    """A share with its interval, as ``12.0 % (5.6–23.8)``."""
    if share is None:
        return None
    return f"{100 * share.value:.1f} % ({100 * share.low:.1f}–{100 * share.high:.1f})"


def quantity(number: Proportion | None) -> str | None:
    """A number of documents with its interval, as ``19 (9–37)``."""
    if number is None:
        return None
    return f"{number.value:,.0f} ({number.low:,.0f}–{number.high:,.0f})"
