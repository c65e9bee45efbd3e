"""Reviewers' verdicts: read, taken in, and brought to rates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.corpus.reviewing.rates import RuleRate, false_removal_rates, wilson
from tasks.corpus.reviewing.sample import ReviewError, Sample, sample_json
from tasks.corpus.reviewing.verdicts import Verdict, labels, read_verdicts, take_verdicts

SHORT = "clean/too_short"


def name(number: int) -> str:
    return f"{number:032x}"


def verdict(number: int, said: Any, reviewer: str | None = None, rule: str = SHORT) -> Verdict:
    return Verdict(id=name(number), rule=rule, verdict=said, reviewer=reviewer)


def sample_of(drawn: int = 10, population: int = 100, rule: str = SHORT) -> Sample:
    rules = {rule: {"strata": {"": population}, "drawn": {name(n): "" for n in range(drawn)}},
             "kept": {"strata": {"": 500}, "drawn": {name(1000): "", name(1001): ""}}}  # fmt: skip
    return Sample.model_validate({"params": {}, "rules": rules})


def line(**given: Any) -> str:
    return json.dumps({"id": name(1), "rule": SHORT, "verdict": "right"} | given)


def write(path: Path, *verdicts: Verdict) -> Path:
    path.write_text("".join(each.model_dump_json() + "\n" for each in verdicts), "utf-8")
    return path


def rate_of(sample: Sample, *verdicts: Verdict) -> RuleRate:
    (rate,) = false_removal_rates(sample, verdicts).rules
    return rate


def test_lines_are_read_whatever_editor_saved_them(tmp_path):
    (tmp_path / "v.jsonl").write_bytes(f"\ufeff{line(rule='kept')}\r\n\r\n".encode())
    assert read_verdicts(tmp_path / "v.jsonl") == [verdict(1, "right", rule="kept")]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{", "Invalid JSON"),
        ("[]", "Input should be an object"),
        (line(verdict="maybe"), "`verdict`: Input should be 'right'"),
        (line(verdict=None), "`verdict`: Input should be 'right'"),
        (line().replace('"rule"', '"rules"'), "`rule`: Field required"),
        (line(id="XYZ"), "`id`"),
        (line(id=3), "`id`"),
        (line(mood=1), "`mood`: Extra"),
        (line(reviewer="r" * 300), "`reviewer`"),
        (line(reviewer="\ud800"), "Invalid JSON"),
        (line(time=["x"]), "`time`"),
    ],
)
def test_a_broken_line_is_an_error_that_names_it(tmp_path, given, says):
    good = verdict(1, "right").model_dump_json()
    (tmp_path / "v.jsonl").write_text(f"{good}\n{given}\n{good}\n", "utf-8")
    with pytest.raises(ReviewError, match=r"v\.jsonl line 2 is no verdict: ") as error:
        read_verdicts(tmp_path / "v.jsonl")
    assert says in str(error.value)


def test_bytes_that_are_no_text_are_an_error_that_names_the_line(tmp_path):
    (tmp_path / "v.jsonl").write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(ReviewError, match=r"line 1 is no verdict"):
        read_verdicts(tmp_path / "v.jsonl")


def test_a_file_that_is_not_there_is_an_error_that_says_where_one_comes_from(tmp_path):
    with pytest.raises(ReviewError, match=r"export one from the page"):
        read_verdicts(tmp_path / "v.jsonl")


def test_of_one_reviewer_the_last_verdict_counts():
    assert labels([verdict(1, "wrong", "a"), verdict(1, "right", "a")]) == {(SHORT, name(1)): "right"}


@pytest.mark.parametrize(
    ("said", "label"),
    [
        (["right"], "right"),
        (["right", "right", "wrong"], "right"),
        (["right", "wrong"], "unsure"),
        (["wrong", "right"], "unsure"),
        (["wrong", "unsure"], "unsure"),
        (["wrong", "unsure", "wrong"], "wrong"),
        (["wrong", "right", "unsure"], "unsure"),
    ],
)
def test_of_several_reviewers_the_label_that_most_gave_and_a_tie_is_unsure(said, label):
    verdicts = [verdict(1, each, f"reviewer {number}") for number, each in enumerate(said)]
    assert labels(verdicts) == {(SHORT, name(1)): label}
    assert labels(reversed(verdicts)) == {(SHORT, name(1)): label}


def test_the_rate_is_the_share_of_wrong_ones_with_wilsons_interval():
    rate = rate_of(sample_of(), *(verdict(n, "wrong" if n < 2 else "right") for n in range(10)))
    assert (rate.population, rate.drawn, rate.reviewed, rate.wrong, rate.unsure) == (100, 10, 10, 2, 0)
    assert rate.rate is not None
    # Newcombe, Statistics in Medicine 17 (1998), has the formula; 2 of 10: 0.0567 to 0.5098
    assert (rate.rate.value, rate.rate.low, rate.rate.high) == pytest.approx((0.2, 0.0567, 0.5098), abs=1e-4)
    assert rate.wrong_in_corpus is not None
    assert rate.wrong_in_corpus.value == pytest.approx(20)


@pytest.mark.parametrize(
    ("wrong", "size", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_that_of_the_published_examples(wrong, size, low, high):
    """Newcombe 1998, table I, method 3."""
    found = wilson(wrong / size, size)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_unsure_ones_are_told_apart_and_are_in_no_rate():
    rate = rate_of(sample_of(), verdict(0, "wrong"), verdict(1, "right"), verdict(2, "unsure"))
    assert (rate.reviewed, rate.unsure) == (2, 1)
    assert rate.rate is not None
    assert rate.rate.value == 0.5


@pytest.mark.parametrize("said", [[], ["unsure"]])
def test_where_nothing_was_judged_there_is_no_rate(said):
    rate = rate_of(sample_of(), *(verdict(n, each) for n, each in enumerate(said)))
    assert rate.rate is None
    assert rate.wrong_in_corpus is None


def test_of_the_kept_wrong_ones_are_those_that_should_have_gone():
    kept = false_removal_rates(sample_of(), [verdict(1000, "wrong", rule="kept")]).kept
    assert kept is not None
    assert (kept.population, kept.reviewed, kept.wrong) == (500, 1, 1)


def test_verdicts_of_unknown_documents_or_rules_are_reported_and_count_nowhere():
    strange = [verdict(77, "wrong"), verdict(1, "wrong", rule="clean/no_such_rule"), verdict(1000, "wrong")]
    rates = false_removal_rates(sample_of(), [verdict(0, "right"), *strange])
    assert rates.unknown == strange
    assert (rates.rules[0].reviewed, rates.rules[0].wrong) == (1, 0)


def test_strata_are_weighted_by_what_they_stand_for():
    drawn = {name(n): "big" if n < 10 else "small" for n in range(20)} | {name(30): "unseen"}
    rules = {SHORT: {"strata": {"big": 900, "small": 100, "unseen": 50}, "drawn": drawn}}
    sample = Sample.model_validate({"params": {}, "rules": rules})
    said = [verdict(n, "wrong" if n in (0, 10, 11, 12, 13, 14) else "right") for n in range(20)]
    rate = rate_of(sample, *said).rate
    assert rate is not None
    assert rate.value == pytest.approx(0.9 * 0.1 + 0.1 * 0.5)
    # Kish: 10 judged in each, weights 90 and 10: (1000)² / (10·90² + 10·10²)
    assert (rate.low, rate.high) == pytest.approx(
        (wilson(0.14, 1000**2 / 82_000).low, wilson(0.14, 1000**2 / 82_000).high)
    )


def test_verdicts_are_taken_in_beside_their_sample_and_later_ones_replace(tmp_path):
    drawn, reviews = tmp_path / "drawn", tmp_path / "reviews"
    drawn.mkdir()
    (drawn / "sample.json").write_text(sample_json(sample_of()))
    first = write(tmp_path / "a.jsonl", verdict(1, "wrong", "a"), verdict(2, "right", "a"))
    second = write(
        tmp_path / "b.jsonl", verdict(1, "right", "a"), verdict(1, "wrong", "b"), verdict(99, "wrong")
    )
    assert take_verdicts(drawn, [first], reviews).verdicts == 2
    taken = take_verdicts(drawn, [second], reviews)
    assert (taken.verdicts, taken.reviewers, taken.unknown) == (4, 3, [verdict(99, "wrong")])
    assert read_verdicts(reviews / "verdicts.jsonl") == [
        verdict(1, "right", "a"),
        verdict(1, "wrong", "b"),
        verdict(2, "right", "a"),
        verdict(99, "wrong"),
    ]
    assert (reviews / "sample.json").read_text() == sample_json(sample_of())
    again = (reviews / "verdicts.jsonl").read_bytes()
    take_verdicts(drawn, [second], reviews)
    assert (reviews / "verdicts.jsonl").read_bytes() == again


def test_a_clone_without_texts_takes_verdicts_of_the_sample_it_has(tmp_path):
    reviews = tmp_path / "reviews"
    reviews.mkdir()
    (reviews / "sample.json").write_text(sample_json(sample_of()))
    taken = take_verdicts(tmp_path / "nowhere", [write(tmp_path / "a.jsonl", verdict(1, "wrong"))], reviews)
    assert taken.verdicts == 1


def test_verdicts_of_another_sample_are_not_mixed_in_but_may_be_replaced(tmp_path):
    drawn, reviews = tmp_path / "drawn", tmp_path / "reviews"
    drawn.mkdir()
    (drawn / "sample.json").write_text(sample_json(sample_of()))
    file = write(tmp_path / "a.jsonl", verdict(1, "wrong"))
    take_verdicts(drawn, [file], reviews)
    before = (reviews / "verdicts.jsonl").read_bytes()
    (drawn / "sample.json").write_text(sample_json(sample_of(drawn=5)))
    new = write(tmp_path / "b.jsonl", verdict(2, "right"))
    with pytest.raises(ReviewError, match=r"verdicts of another sample"):
        take_verdicts(drawn, [new], reviews)
    assert (reviews / "verdicts.jsonl").read_bytes() == before
    take_verdicts(drawn, [new], reviews, replace=True)
    assert read_verdicts(reviews / "verdicts.jsonl") == [verdict(2, "right")]


def test_a_file_of_which_no_verdict_fits_is_refused(tmp_path):
    drawn = tmp_path / "drawn"
    drawn.mkdir()
    (drawn / "sample.json").write_text(sample_json(sample_of()))
    with pytest.raises(ReviewError, match=r"none of its 1 verdicts"):
        take_verdicts(drawn, [write(tmp_path / "a.jsonl", verdict(99, "wrong"))], tmp_path / "reviews")
    assert not (tmp_path / "reviews").exists()


def test_a_broken_file_changes_nothing(tmp_path):
    drawn = tmp_path / "drawn"
    drawn.mkdir()
    (drawn / "sample.json").write_text(sample_json(sample_of()))
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": 3}))
    with pytest.raises(ReviewError, match=r"a\.jsonl line 1"):
        take_verdicts(drawn, [tmp_path / "a.jsonl"], tmp_path / "reviews")
    assert not (tmp_path / "reviews").exists()
