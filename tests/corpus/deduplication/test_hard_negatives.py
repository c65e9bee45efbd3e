from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.dedup import DedupParams, dedup
from tasks.resources import Resources
from tests.corpus.deduplication.hard_negatives import (
    NEGATIVES,
    LookAlike,
    jaccard,
    look_alikes,
    shingles_of,
    true_pairs,
)

CLEARLY_ALIKE = 0.88
"""From here on 14 bands of 8 rows find 998 of 1000 pairs."""


@pytest.fixture(scope="module")
def documents() -> list[LookAlike]:
    return look_alikes()


@pytest.fixture(scope="module")
def alike(documents: list[LookAlike]) -> dict[tuple[int, int], float]:
    return true_pairs([document.text for document in documents])


def groups_of(count: int, pairs: list[tuple[int, int]]) -> list[int]:
    """A number for each document, equal for those that a chain of pairs joins."""
    group = list(range(count))
    for one, other in pairs:
        old, new = group[other], group[one]
        if old != new:
            group = [new if number == old else number for number in group]
    return group


def test_look_alikes_are_near_and_no_duplicates(
    documents: list[LookAlike], alike: dict[tuple[int, int], float]
) -> None:
    families = Counter(document.family for document in documents)
    assert len(documents) > 500
    for family in NEGATIVES:
        sets = [shingles_of(document.text) for document in documents if document.family == family]
        values = [jaccard(one, other) for one, other in itertools.combinations(sets, 2)]
        assert 0.5 < max(values) < 0.8, family
        assert sum(value > 0.5 for value in values) >= families[family] // 3, family
    assert not {documents[place].family for pair in alike for place in pair} & set(NEGATIVES)


def test_edited_copies_are_clearly_alike(
    documents: list[LookAlike], alike: dict[tuple[int, int], float]
) -> None:
    clear = [pair for pair, value in alike.items() if value >= CLEARLY_ALIKE]
    assert len(clear) > 200
    # Weaker pairs join nothing that clear ones do not.
    assert len(set(groups_of(len(documents), clear))) == len(set(groups_of(len(documents), list(alike))))


def test_duplicates_go_and_look_alikes_stay(
    documents: list[LookAlike],
    alike: dict[tuple[int, int], float],
    layer: Callable[..., Path],
    tmp_path: Path,
    resources: Resources,
    documents_of: Callable[[Path], list[dict[str, Any]]],
    ledger_of: Callable[[Path], list[dict[str, Any]]],
) -> None:
    clean = layer(*(document.text for document in documents), parts=3)
    (tmp_path / "earlier").mkdir()
    dedup(clean, tmp_path / "earlier", tmp_path / "unique", DedupParams(), resources)
    # The fixture numbers documents from 1 in their origins.
    place = {row["id"]: int(row["origin"].rpartition(":")[2]) - 1 for row in documents_of(clean)}
    group = groups_of(len(documents), list(alike))
    removed = {place[row["id"]]: place[row["detail"]] for row in ledger_of(tmp_path / "unique")}
    wrong = [
        (documents[gone].family, documents[kept].family)
        for gone, kept in removed.items()
        if group[gone] != group[kept]
    ]
    assert wrong == []
    kept = {place[row["id"]] for row in documents_of(tmp_path / "unique")}
    assert kept == set(range(len(documents))) - set(removed)
    assert set(removed.values()) <= kept
    assert len(removed) >= 0.99 * (len(documents) - len(set(group)))
