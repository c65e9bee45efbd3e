from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.mix import MixParams, mix
from tasks.resources import Resources
from tasks.stage import StageError


@pytest.fixture
def mixed(layer: Callable[..., Path], tmp_path: Path, resources: Resources):
    def run(**params: Any):
        documents = [{"text": f"book {i}", "source": "books"} for i in range(100)]
        documents += [{"text": f"page {i}", "source": "web"} for i in range(100)]
        unique = layer(*documents, name="unique")
        return mix(unique, tmp_path / "mixture", MixParams(**params), resources), tmp_path / "mixture"

    return run


def test_a_source_is_seen_as_often_as_asked(mixed, documents_of, ledger_of) -> None:
    report, layer = mixed(epochs={"books": 2.5, "web": 0.5}, validation_share=0.0)
    seen = Counter(row["source"] for row in documents_of(layer))
    assert 235 <= seen["books"] <= 265
    assert 35 <= seen["web"] <= 65
    assert report.kept == 100 + seen["web"]
    assert report.removed_by_rule == {"mixture": 100 - seen["web"]}
    assert len(ledger_of(layer)) == 100 - seen["web"]


def test_what_is_held_out_is_held_out_once_and_never_trained_on(mixed, documents_of) -> None:
    report, layer = mixed(epochs={"books": 3}, validation_share=0.2)
    rows = documents_of(layer)
    held_out = [row["text"] for row in rows if row["split"] == "validation"]
    trained = {row["text"] for row in rows if row["split"] == "train"}
    assert 20 <= len(held_out) <= 60
    assert len(held_out) == len(set(held_out)) == report.validation_documents
    assert not trained & set(held_out)


def test_copies_of_a_document_are_apart(mixed, documents_of) -> None:
    _, layer = mixed(epochs={"books": 2, "web": 0}, validation_share=0.0)
    order = [row["text"] for row in documents_of(layer)]
    neighbours = sum(a == b for a, b in pairwise(order))
    assert neighbours < 10
    assert order != sorted(order)


def test_an_unknown_source_is_named(mixed, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="no documents of a source `bokos`; there are books, web"):
        mixed(epochs={"bokos": 2})
    assert not (tmp_path / "mixture").exists()


def test_a_mixture_of_nothing_is_an_error(mixed) -> None:
    with pytest.raises(StageError, match="no training document"):
        mixed(epochs={"books": 0, "web": 0})


def test_levels_are_asked_for_and_what_came_out_is_told(mixed, documents_of) -> None:
    report, layer = mixed(levels=[{"by": "source", "weights": {"books": 0.75}}], validation_share=0.1)
    train = [row for row in documents_of(layer) if row["split"] == "train"]
    size = Counter[str]()
    for row in train:
        size[row["source"]] += len(row["text"])
    books, web = report.groups
    assert (books.group, books.asked, web.asked) == (["books"], 0.75, 0.25)
    assert (books.bytes, web.bytes) == (size["books"], size["web"])
    assert books.given == pytest.approx(0.75, abs=0.05)
    assert books.epochs > 1 > web.epochs
    assert report.budget_bytes == books.available_bytes + web.available_bytes
    assert report.train_bytes == books.bytes + web.bytes == pytest.approx(report.budget_bytes, rel=0.1)


def test_a_budget_in_tokens_is_reckoned_by_bytes(mixed) -> None:
    report, _ = mixed(levels=[{"by": "source"}], tokens=100, bytes_per_token=4.0, validation_share=0.0)
    assert report.budget_bytes == 400
    assert report.train_bytes == pytest.approx(400, rel=0.25)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epochs": {"books": 2}, "levels": [{"by": "source"}]}, "not both"),
        ({"tokens": 5}, "name at least one"),
        ({"levels": [{"by": "source"}, {"by": "source"}]}, "a column of its own"),
        ({"epochs": {"books": -1}}, "mix.epochs.books must be 0 or more"),
    ],
    ids=["both", "no-levels", "twice", "negative"],
)
def test_parameters_that_contradict_each_other_are_refused(params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MixParams.model_validate(params)
