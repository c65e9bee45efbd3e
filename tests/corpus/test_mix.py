from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.mix import MixParams, is_held_out, mix
from tasks.records import content_hash
from tasks.resources import Resources
from tasks.spark import spark_session
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


Mixed = Callable[..., Any]


@pytest.fixture
def mix_of(layer: Callable[..., Path], tmp_path: Path, resources: Resources) -> Mixed:
    """Mix documents, each given as text or as columns."""

    def run(*documents: str | dict[str, Any], **params: Any) -> Any:
        unique = layer(*documents, name="unique")
        given = MixParams.model_validate({"validation_share": 0.0} | params)
        return mix(unique, tmp_path / "mixture", given, resources), tmp_path / "mixture"

    return run


def from_sources(**documents: int) -> list[dict[str, Any]]:
    return [
        {"text": f"{source} {number}", "source": source}
        for source, count in documents.items()
        for number in range(count)
    ]


@pytest.mark.parametrize(
    "params", [{}, {"levels": [{"by": "source"}, {"by": "language"}]}], ids=["epochs", "levels"]
)
def test_one_document_is_a_mixture(mix_of: Mixed, documents_of, params: dict[str, Any]) -> None:
    report, mixture = mix_of("the only one", **params)
    (row,) = documents_of(mixture)
    assert (row["text"], row["split"], row["copy"]) == ("the only one", "train", 0)
    assert (report.train_documents, report.validation_documents) == (1, 0)
    assert [(group.asked, group.given, group.epochs) for group in report.groups] == [(1.0, 1.0, 1.0)]


def test_a_layer_without_documents_is_an_error(mix_of: Mixed, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="no training document"):
        mix_of()
    assert not (tmp_path / "mixture").exists()


def test_a_source_of_which_nothing_is_left_is_no_source_to_ask_for(mix_of: Mixed) -> None:
    with pytest.raises(StageError, match="no documents of a source `gone`; there are web"):
        mix_of(*from_sources(web=3), epochs={"gone": 2})


def test_a_weight_for_a_group_that_is_not_there_is_named(mix_of: Mixed, tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"mix\.levels: no documents of source `gone`; there are web"):
        mix_of(*from_sources(web=3), levels=[{"by": "source", "weights": {"gone": 0.5}}])
    assert not (tmp_path / "mixture").exists()


@pytest.mark.parametrize("params", [{}, {"levels": [{"by": "source"}]}], ids=["epochs", "levels"])
def test_documents_without_a_letter_of_text_are_an_error(mix_of: Mixed, params: dict[str, Any]) -> None:
    with pytest.raises(StageError, match="are all empty|no text"):
        mix_of("", **params)


@pytest.mark.parametrize("params", [{}, {"levels": [{"by": "source"}]}], ids=["epochs", "levels"])
def test_documents_that_are_all_held_out_leave_no_mixture(
    mix_of: Mixed, tmp_path: Path, params: dict[str, Any]
) -> None:
    with pytest.raises(StageError, match=r"no training document: see .*mix\.validation_share"):
        mix_of(*from_sources(web=5), validation_share=0.999999, **params)
    assert not (tmp_path / "mixture").exists()


def test_a_source_that_is_all_held_out_is_in_validation_and_reported_with_nothing(
    mix_of: Mixed, documents_of
) -> None:
    held_out = is_held_out(MixParams(validation_share=0.5))
    texts = [f"text {number}" for number in range(60)]
    documents = [
        {"text": text, "source": "rare" if held_out(content_hash(text)) and number < 20 else "web"}
        for number, text in enumerate(texts)
    ]
    report, mixture = mix_of(
        *documents, validation_share=0.5, levels=[{"by": "source", "weights": {"rare": 0.3}}]
    )
    rare = [row for row in documents_of(mixture) if row["source"] == "rare"]
    assert rare
    assert {row["split"] for row in rare} == {"validation"}
    assert {group.group[0]: (group.asked, group.given, group.available_bytes) for group in report.groups} == {
        "rare": (0.3, 0.0, 0),
        "web": (0.7, 1.0, report.train_bytes),
    }


def test_a_source_of_0_epochs_is_in_the_ledger_and_nowhere_else(
    mix_of: Mixed, documents_of, ledger_of
) -> None:
    report, mixture = mix_of(*from_sources(books=4, web=6), epochs={"web": 0}, validation_share=0.3)
    assert {row["source"] for row in documents_of(mixture)} == {"books"}
    left_out = ledger_of(mixture)
    assert [(row["rule"], row["threshold"], row["verdict"]) for row in left_out] == [
        ("mixture", 0.0, "removed")
    ] * 6
    assert report.removed_by_rule == {"mixture": 6}


def test_a_budget_smaller_than_one_document_is_met_by_one_or_told_to_give_none(
    layer: Callable[..., Path], tmp_path: Path, resources: Resources
) -> None:
    unique = layer(*["x" * 1000 + str(number) for number in range(4)], name="unique")
    drawn: list[int] = []
    refused: list[str] = []
    for seed in range(12):
        params = MixParams.model_validate(
            {"levels": [{"by": "source"}], "tokens": 125, "validation_share": 0.0, "seed": seed}
        )
        try:
            report = mix(unique, tmp_path / f"mixture {seed}", params, resources)
        except StageError as error:
            refused.append(str(error))
        else:
            assert report.budget_bytes == 500
            assert report.groups[0].epochs == pytest.approx(500 / 4004, rel=1e-4)
            drawn.append(report.train_documents)
    assert 1 in drawn
    assert refused
    assert all("no training document" in message for message in refused)


def test_the_mixture_is_the_same_bytes_on_1_2_and_7_partitions(
    layer: Callable[..., Path], tmp_path: Path, resources: Resources
) -> None:
    documents = [
        {"text": f"{source} {number} " + "é" * (number % 9), "source": source, "language": language}
        for source, count in {"books": 30, "web": 90}.items()
        for number in range(count)
        for language in ("en", "zh", None)
    ]
    unique = layer(*documents, name="unique", parts=3)
    levels = [{"by": "source", "weights": {"books": 0.6}}, {"by": "language", "temperature": 3.3}]
    params = MixParams.model_validate({"levels": levels, "validation_share": 0.1})
    made = []
    with spark_session("partitions", resources) as spark:
        before = str(spark.conf.get("spark.sql.shuffle.partitions"))
        try:
            for partitions in (1, 2, 7):
                spark.conf.set("spark.sql.shuffle.partitions", partitions)
                folder = tmp_path / f"on {partitions}"
                report = mix(unique, folder, params, resources)
                files = {
                    path.relative_to(folder): path.read_bytes()
                    for path in folder.rglob("*")
                    if path.is_file()
                }
                made.append((report, files))
        finally:
            spark.conf.set("spark.sql.shuffle.partitions", before)
    assert Path("documents/part-00000.parquet") in made[0][1]
    assert made[0] == made[1] == made[2]
