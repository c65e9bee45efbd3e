from __future__ import annotations

import itertools
from typing import Any

import pytest

from tasks.corpus.policies.rules import Rule, completed
from tasks.parameters import ParameterError, validate

SIGNALS = {"words", "lines", "mean_word_length"}


@pytest.mark.parametrize(
    ("scope", "judged"),
    [
        ({}, [("docs", "book", "en"), ("web", "code", "zxx")]),
        ({"only_sources": ["docs"]}, [("docs", "book", "en")]),
        ({"only_kinds": ["code"]}, [("web", "code", "zxx")]),
        ({"except_kinds": ["code"]}, [("docs", "book", "en")]),
        ({"only_languages": ["en", "zh"]}, [("docs", "book", "en")]),
        ({"except_languages": ["en"]}, [("web", "code", "zxx")]),
        ({"only_sources": ["docs"], "only_languages": ["zh"]}, []),
    ],
)
def test_a_scope_is_all_that_it_says(scope: dict[str, Any], judged: list[tuple[str, str, str]]) -> None:
    rule = Rule(name="r", minimum=1, **scope)
    documents = [("docs", "book", "en"), ("web", "code", "zxx")]
    assert [document for document in documents if rule.judges(*document)] == judged


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "needs a minimum or a maximum, or `off: true`"),
        ({"off": True, "minimum": 1}, "is off and has a bound"),
        ({"minimum": 3, "maximum": 2}, "no value is both at least 3.0 and at most 2.0"),
        ({"minimum": float("nan")}, "finite"),
        ({"maximum": float("inf")}, "finite"),
        ({"minimum": "3"}, "valid number"),
        ({"maximum": 1, "name": "Too Long"}, "pattern"),
        ({"maximum": 1, "only_kind": ["code"]}, "did you mean `only_kinds`"),
        ({"maximum": 1, "only_kinds": ["boks"]}, "'web', 'book', 'code', 'dialogue' or 'reference'"),
        ({"maximum": 1, "except_kinds": ["cod"]}, "'web', 'book', 'code', 'dialogue' or 'reference'"),
        ({"maximum": 1, "only_languages": ["english"]}, "pattern"),
        ({"maximum": 1, "except_languages": ["EN"]}, "pattern"),
        ({"maximum": 1, "only_sources": []}, "at least 1 item"),
        ({"maximum": 1, "only_kinds": []}, "at least 1 item"),
        ({"maximum": 1, "only_languages": []}, "at least 1 item"),
        ({"maximum": 1, "only_kinds": ["book"], "except_kinds": ["book"]}, "judges no document"),
        ({"off": True, "only_languages": ["en"], "except_languages": ["de", "en"]}, "judges no document"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        validate({"name": "r", "signal": "words"} | given, Rule, "clean.rules")


def test_equal_bounds_leave_one_value() -> None:
    assert Rule(name="r", minimum=2, maximum=2).minimum == 2


def test_an_entry_takes_the_signal_of_the_one_before_of_its_name() -> None:
    rules = [
        Rule(name="short", signal="words", minimum=50),
        Rule(name="other", signal="lines", minimum=1),
        Rule(name="short", minimum=5, only_kinds=["code"]),
        Rule(name="short", signal="lines", minimum=2, only_sources=["lists"]),
        Rule(name="short", off=True, only_languages=["zh"]),
    ]
    signals = [rule.signal for rule in completed(rules, SIGNALS)]
    assert signals == ["words", "lines", "words", "lines", "lines"]
    assert rules[2].signal is None, "what was given stays as it is"


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        (
            [Rule(name="short", minimum=1)],
            "rule short: `signal` is missing, and no entry before has this name",
        ),
        ([Rule(name="short", off=True)], "rule short: `signal` is missing"),
        ([Rule(name="short", signal="wrods", minimum=1)], "no signal `wrods`; did you mean `words`?"),
        ([Rule(name="short", signal="xyz", minimum=1)], "known are: lines, mean_word_length, words"),
    ],
)
def test_a_signal_that_is_not_measured_is_named_with_the_nearest(rules: list[Rule], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("?", "[?]")):
        completed(rules, SIGNALS)


def test_rules_of_different_names_stay_apart_whatever_their_order() -> None:
    rules = [
        Rule(name=name, signal=signal, minimum=1) for name, signal in zip("abc", sorted(SIGNALS), strict=True)
    ]
    for order in itertools.permutations(rules):
        assert {rule.name: rule.signal for rule in completed(list(order), SIGNALS)} == {
            rule.name: rule.signal for rule in rules
        }
