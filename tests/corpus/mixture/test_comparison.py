from __future__ import annotations

from collections.abc import Mapping

import pytest

from tasks.corpus.mixture.comparison import Comparison, compare, expected
from tasks.corpus.mixture.plan import By, Group, Level, plan

SIZES: dict[Group, int] = {("general",): 900, ("law",): 100}


def compared(
    sizes: Mapping[Group, int],
    *levels: Level,
    by: By,
    cap: float = 4.0,
    budget: float | None = None,
    before: Mapping[Group, int] | None = None,
) -> dict[str, Comparison]:
    columns = [level.by for level in levels]
    weights = next(level.weights for level in levels if level.by == by)
    found = compare(
        expected(plan(sizes, levels, budget, cap)), columns, [by], weights=weights, maximum_epochs=cap,
        budget_bytes=budget or sum(sizes.values()), before=before,
    )  # fmt: skip
    return {item.group[0]: item for item in found}


def test_what_is_given_as_asked_needs_no_reason() -> None:
    law = compared(SIZES, Level(by="domain", weights={"law": 0.3}), by="domain")["law"]
    assert (law.asked, law.given, law.epochs) == (0.3, pytest.approx(0.3), pytest.approx(3.0))
    assert law.because == ""


def test_a_cap_is_told_with_the_epochs_that_the_share_would_need() -> None:
    found = compared(SIZES, Level(by="domain", weights={"law": 0.5}), by="domain", cap=2.0)
    assert (found["law"].asked, found["law"].given) == (0.5, pytest.approx(0.2))
    assert found["law"].because == "it would be seen 5.0 times, and maximum_epochs is 2"
    assert found["general"].because == "takes over what others cannot give"


def test_a_value_that_is_all_held_out_is_told() -> None:
    sizes = {**SIZES, ("code",): 0}
    code = compared(sizes, Level(by="domain", weights={"code": 0.2}), by="domain")["code"]
    assert (code.given, code.because) == (0.0, "all its documents are held out for validation")


def test_weights_for_all_that_are_less_than_the_whole_are_told() -> None:
    found = compared(SIZES, Level(by="domain", weights={"law": 0.2, "general": 0.3}), by="domain", cap=9)
    assert found["law"].given == pytest.approx(0.4)
    assert found["law"].because == "the weights name every value and are 0.5 together"


def test_a_value_that_is_missing_within_a_group_above_is_told() -> None:
    sizes = {("law", "en"): 500, ("general", "en"): 250, ("general", "zh"): 250}
    levels = Level(by="domain"), Level(by="language", weights={"zh": 0.5})
    zh = compared(sizes, *levels, by="language")["zh"]
    assert (zh.asked, zh.given) == (0.5, pytest.approx(0.25))
    assert zh.because == "a share within each domain, not all of which have it"


def test_groups_that_the_cap_holds_are_counted_where_a_value_has_several() -> None:
    sizes = {("law", "en"): 10, ("law", "zh"): 90, ("general", "en"): 450, ("general", "zh"): 450}
    levels = Level(by="domain", weights={"law": 0.3}), Level(by="language", temperature=1e9)
    law = compared(sizes, *levels, by="domain", cap=3.0)["law"]
    assert law.because == "1 of its 2 groups would be seen more than 3 times"


def test_shares_before_are_of_the_mixture_before_and_none_without_one() -> None:
    level = Level(by="domain", weights={"law": 0.3})
    before = compared(SIZES, level, by="domain", before={("general",): 60})
    assert (before["general"].before, before["law"].before) == (1.0, 0.0)
    assert compared(SIZES, level, by="domain")["law"].before is None
