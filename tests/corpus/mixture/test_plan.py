from __future__ import annotations

import pytest

from tasks.corpus.mixture.plan import Group, Level, plan
from tasks.stage import StageError

SIZES: dict[Group, int] = {
    ("general", "en"): 800, ("general", "de"): 100, ("general", "zh"): 100,
    ("law", "en"): 50, ("law", "de"): 50,
}  # fmt: skip
BY_DOMAIN = Level(by="domain", weights={"law": 0.3})


def epochs_of(*levels: Level, budget: float | None = None, cap: float = 100.0) -> dict[Group, float]:
    return {group.group: group.epochs for group in plan(SIZES, levels, budget, cap)}


def bytes_of(epochs: dict[Group, float]) -> dict[Group, float]:
    return {group: times * SIZES[group] for group, times in epochs.items()}


def test_levels_without_weights_leave_everything_as_it_is() -> None:
    assert epochs_of(Level(by="domain"), Level(by="language")) == pytest.approx(dict.fromkeys(SIZES, 1.0))


def test_a_weight_is_a_share_and_the_rest_is_for_those_not_named() -> None:
    given = bytes_of(epochs_of(BY_DOMAIN, Level(by="language")))
    assert sum(given.values()) == pytest.approx(1100)
    assert given["law", "en"] + given["law", "de"] == pytest.approx(330)
    assert given["general", "en"] == pytest.approx(770 * 0.8)


def test_temperature_evens_out_within_a_group_of_the_level_above() -> None:
    given = bytes_of(epochs_of(BY_DOMAIN, Level(by="language", temperature=1e9)))
    assert given["general", "en"] == pytest.approx(given["general", "zh"], rel=1e-6)
    assert given["law", "en"] == pytest.approx(165)


def test_temperature_is_that_of_xlm_r() -> None:
    given = bytes_of(epochs_of(BY_DOMAIN, Level(by="language", temperature=2.0)))
    assert given["general", "en"] / given["general", "de"] == pytest.approx((800 / 100) ** 0.5)


@pytest.mark.parametrize("temperature", [1e-3, 1e-320])
def test_a_temperature_near_0_gives_all_to_the_largest(temperature: float) -> None:
    given = bytes_of(epochs_of(Level(by="domain", temperature=temperature), Level(by="language")))
    assert given["law", "en"] + given["law", "de"] == 0
    assert sum(given.values()) == pytest.approx(1100)


def test_what_the_cap_takes_is_shared_among_the_others_as_they_were_asked() -> None:
    epochs = epochs_of(BY_DOMAIN, Level(by="language"), cap=2.0)
    assert epochs["law", "en"] == epochs["law", "de"] == 2.0
    assert sum(bytes_of(epochs).values()) == pytest.approx(1100)
    assert epochs["general", "en"] == pytest.approx(epochs["general", "de"]) == pytest.approx(900 / 1000)


def test_a_cap_that_binds_everywhere_leaves_the_budget_unmet() -> None:
    assert epochs_of(Level(by="domain"), Level(by="language"), budget=1e6, cap=3.0) == dict.fromkeys(
        SIZES, 3.0
    )


def test_the_budget_is_met() -> None:
    assert sum(bytes_of(epochs_of(BY_DOMAIN, Level(by="language"), budget=400)).values()) == pytest.approx(
        400
    )


def test_a_value_missing_in_one_group_leaves_its_share_to_those_that_are_there() -> None:
    given = bytes_of(epochs_of(BY_DOMAIN, Level(by="language", weights={"zh": 0.5, "en": 0.25})))
    assert given["general", "zh"] == pytest.approx(770 * 0.5)
    assert given["law", "en"] == pytest.approx(330 * 0.5)
    assert given["law", "de"] == pytest.approx(330 * 0.5)


def test_a_weight_of_nothing_leaves_a_group_out() -> None:
    epochs = epochs_of(Level(by="domain", weights={"law": 0.0}), Level(by="language"))
    assert epochs["law", "en"] == epochs["law", "de"] == 0.0


def test_a_group_that_is_all_held_out_stays() -> None:
    held_out = {("law",): 0, ("general",): 100, ("spam",): 0}
    planned = plan(held_out, [Level(by="domain", weights={"spam": 0.0})], None, 4.0)
    assert {group.group: group.epochs for group in planned} == {
        ("law",): 1.0, ("general",): pytest.approx(1.0, rel=0.02), ("spam",): 0.0,
    }  # fmt: skip


def test_a_weight_for_what_is_not_there_is_named() -> None:
    with pytest.raises(StageError, match="no documents of domain `lwa`; there are general, law"):
        epochs_of(Level(by="domain", weights={"lwa": 0.3}), Level(by="language"))


@pytest.mark.parametrize(
    ("weights", "message"), [({"a": -0.1}, "from 0 to 1"), ({"a": 0.7, "b": 0.4}, "1.1")]
)
def test_weights_are_shares(weights: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Level(by="domain", weights=weights)
