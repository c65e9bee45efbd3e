from __future__ import annotations

from typing import Any

import pytest

from tasks.corpus.mixture.plan import Level
from tasks.corpus.mixture.rebalancing import MixtureChange, rebalanced, shares_like

DOMAINS = Level(by="domain", weights={"law": 0.3})
LANGUAGES = Level(by="language", weights={"zh": 0.1}, temperature=3.3)


def test_the_level_that_is_named_gets_other_weights_in_its_place_and_keeps_its_temperature() -> None:
    change = MixtureChange(by="language", weights={"de": 0.5})
    assert rebalanced([DOMAINS, LANGUAGES], change) == [
        DOMAINS,
        Level(by="language", weights={"de": 0.5}, temperature=3.3),
    ]


def test_another_temperature_leaves_the_weights() -> None:
    change = MixtureChange(by="language", temperature=1.0)
    assert rebalanced([DOMAINS, LANGUAGES], change)[1] == Level(by="language", weights={"zh": 0.1})


def test_a_new_level_comes_first_so_that_its_shares_are_of_the_whole() -> None:
    change = MixtureChange(by="kind", weights={"book": 0.5})
    assert rebalanced([DOMAINS, LANGUAGES], change) == [
        Level(by="kind", weights={"book": 0.5}),
        DOMAINS,
        LANGUAGES,
    ]


def test_another_size_leaves_the_levels() -> None:
    assert rebalanced([DOMAINS, LANGUAGES], MixtureChange(tokens=5)) == [DOMAINS, LANGUAGES]


def test_the_levels_that_are_given_stay_as_they_were() -> None:
    levels = [DOMAINS, LANGUAGES]
    rebalanced(levels, MixtureChange(by="domain", weights={"law": 0.9}))
    assert levels == [DOMAINS, LANGUAGES]
    assert DOMAINS.weights == {"law": 0.3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "nothing to change"),
        ({"weights": {"law": 0.3}}, "need the level"),
        ({"temperature": 2.0}, "need the level"),
        ({"by": "domain"}, "what of the level domain"),
        ({"by": "colour", "weights": {"red": 1}}, "'source', 'kind', 'domain', 'language' or 'license'"),
        ({"by": "domain", "weights": {"law": -0.1}}, "from 0 to 1, not -0.1"),
        ({"by": "domain", "weights": {"law": 0.8, "web": 0.3}}, "more than 1 together, but are 1.1"),
        ({"by": "domain", "weights": {"law": float("nan")}}, "finite"),
        ({"by": "domain", "temperature": 0}, "greater than 0"),
        ({"maximum_epochs": float("inf")}, "finite"),
        ({"tokens": 0}, "greater than or equal to 1"),
        ({"tokns": 5}, "tokns"),
    ],
    ids=[
        "nothing", "weights-alone", "temperature-alone", "level-alone", "no-such-column", "negative",
        "too-much", "nan", "temperature-0", "epochs-inf", "tokens-0", "unknown-key",
    ],
)  # fmt: skip
def test_a_change_that_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MixtureChange.model_validate(change)


def test_shares_have_the_proportions_of_the_counts() -> None:
    assert shares_like({"law": 300, "general": 700}) == {"general": 0.7, "law": 0.3}


def test_shares_of_many_values_are_weights_that_a_level_takes() -> None:
    shares = shares_like({f"source {number}": 1 + number % 7 for number in range(3001)})
    assert Level(by="source", weights=shares).weights == shares
    assert sum(shares.values()) == pytest.approx(1)


def test_what_cannot_be_given_leaves_its_part_to_the_others_as_they_are() -> None:
    shares = shares_like({"law": 1, "general": 3, "medicine": 4}, among=["general", "law", "code"])
    assert shares == {"general": 0.75, "law": 0.25, "code": 0.0}


@pytest.mark.parametrize(
    ("counts", "among", "message"),
    [
        ({"law": -1}, None, "law must be 0 or more, not -1"),
        ({"law": float("nan")}, None, "law must be 0 or more, not nan"),
        ({}, None, "nothing of any value"),
        ({"law": 0}, None, "nothing of law"),
        ({"law": 2}, ["code"], "nothing of code: it holds law"),
    ],
    ids=["negative", "nan", "empty", "zero", "nothing-in-common"],
)
def test_counts_that_give_no_shares_are_refused(
    counts: dict[str, float], among: list[str] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        shares_like(counts, among)
