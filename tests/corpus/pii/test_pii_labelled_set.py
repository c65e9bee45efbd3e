"""Precision and recall on values planted in real text, among things that only look like them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from tasks.corpus.pii.find import KINDS, find_personal_data
from tests.corpus.pii.labelled_set import PER_KIND, labelled_set


@dataclass
class Score:
    """How many were planted, found, and found rightly."""

    planted: Counter[str]
    found: Counter[str]
    right: Counter[str]

    def precision(self, kind: str | None = None) -> float:
        return self._of(self.right, kind) / max(1, self._of(self.found, kind))

    def recall(self, kind: str | None = None) -> float:
        return self._of(self.right, kind) / max(1, self._of(self.planted, kind))

    @staticmethod
    def _of(counts: Counter[str], kind: str | None) -> int:
        return counts[kind] if kind else sum(counts.values())


@pytest.fixture(scope="module")
def score() -> Score:
    """A find is right if it has the kind of a planted value, all of it, and at most two characters more."""
    score = Score(Counter(), Counter(), Counter())
    for labelled in labelled_set(seed=1):
        found = find_personal_data(labelled.text)
        score.planted.update(each.kind for each in labelled.planted)
        score.found.update(each.kind for each in found)
        for value in labelled.planted:
            length = value.end - value.start
            score.right[value.kind] += any(
                each.kind == value.kind
                and each.start <= value.start
                and each.end >= value.end
                and each.end - each.start <= length + 2
                for each in found
            )
    return score


def test_precision_is_at_least_98_percent(score: Score):
    assert score.precision() >= 0.98


def test_recall_is_at_least_95_percent(score: Score):
    assert score.recall() >= 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_found_precisely_and_nearly_always(score: Score, kind: str):
    assert score.planted[kind] == PER_KIND
    assert score.precision(kind) >= 0.95
    assert score.recall(kind) >= 0.9
