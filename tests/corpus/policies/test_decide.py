from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tasks.corpus.policies.decide import Scope, decide
from tasks.corpus.policies.judgement import Judge, judge_batch
from tasks.corpus.policies.policy import CleanParams
from tasks.corpus.policies.rules import Rule

NAN = float("nan")
BOOK: Scope = ("docs", "book", "en")
CODE: Scope = ("repo", "code", "zxx")


def failing(
    rules: Sequence[Rule], words: Sequence[float], scopes: Sequence[Scope] | None = None
) -> list[bool]:
    """Whether each document, of so many words, fails the one rule."""
    decisions = decide(rules, np.array(words)[:, None], ["words"], scopes or [BOOK] * len(words))
    assert len(decisions.names) == 1
    return decisions.failed_DR[:, 0].tolist()


def test_bounds_themselves_pass() -> None:
    rule = Rule(name="r", signal="words", minimum=50, maximum=100)
    assert failing([rule], [49.999, 50, 75, 100, 100.001]) == [True, False, False, False, True]


def test_what_was_not_measured_never_fails() -> None:
    rules = [Rule(name="r", signal="words", minimum=50, maximum=100)]
    assert failing(rules, [NAN, 49]) == [False, True]
    decisions = decide([Rule(name="r", signal="toxicity", maximum=0)], np.array([[1.0]]), ["words"], [BOOK])
    assert not decisions.failed_DR.any()


def test_infinite_values_are_beyond_every_bound() -> None:
    assert failing([Rule(name="r", signal="words", maximum=9)], [np.inf, -np.inf]) == [True, False]
    assert failing([Rule(name="r", signal="words", minimum=9)], [np.inf, -np.inf]) == [False, True]


def test_the_last_entry_whose_scope_has_a_document_decides() -> None:
    rules = [
        Rule(name="r", signal="words", minimum=50),
        Rule(name="r", signal="words", minimum=5, only_kinds=["code"]),
        Rule(name="r", signal="words", minimum=80, only_languages=["en"]),
    ]
    assert failing(rules, [60, 10, 60], [BOOK, CODE, ("docs", "book", "de")]) == [True, False, False]
    assert failing(rules[::-1], [60, 10, 60], [BOOK, CODE, ("docs", "book", "de")]) == [False, True, False]


def test_the_entry_that_decides_does_so_alone() -> None:
    rules = [
        Rule(name="r", signal="words", minimum=50, maximum=100),
        Rule(name="r", signal="words", maximum=70, only_sources=["docs"]),
    ]
    assert failing(rules, [1, 71], [BOOK, BOOK]) == [False, True]


def test_a_rule_that_is_off_in_a_scope_judges_the_others() -> None:
    rules = [Rule(name="r", signal="words", minimum=50), Rule(name="r", off=True, only_kinds=["code"])]
    assert failing(rules, [1, 1], [BOOK, CODE]) == [True, False]
    on_again = Rule(name="r", signal="words", minimum=5, only_sources=["repo"])
    assert failing([*rules, on_again], [1, 1], [BOOK, CODE]) == [True, True]


def test_thresholds_may_differ_by_source_kind_and_language() -> None:
    rules = [
        Rule(name="r", signal="words", minimum=40),
        Rule(name="r", signal="words", minimum=30, only_kinds=["reference"]),
        Rule(name="r", signal="words", minimum=20, only_languages=["zh"]),
        Rule(name="r", signal="words", minimum=10, only_sources=["lists"]),
    ]
    scopes = [
        ("a", "book", "en"),
        ("a", "reference", "en"),
        ("a", "reference", "zh"),
        ("lists", "book", "zh"),
    ]
    decisions = decide(rules, np.full((4, 1), 50.0), ["words"], scopes)
    assert decisions.minimum_DR[:, 0].tolist() == [40, 30, 20, 10]


def test_a_finding_has_the_value_the_bound_and_the_side() -> None:
    rules = [
        Rule(name="length", signal="words", minimum=50, maximum=100),
        Rule(name="lines", signal="lines", maximum=3),
    ]
    decisions = decide(rules, np.array([[49.0, 4.0], [101.0, 1.0]]), ["words", "lines"], [BOOK, BOOK])
    first, second = (decisions.findings(number, decisions.failed_DR[number]) for number in (0, 1))
    assert [(f.rule, f.value, f.threshold, f.detail) for f in first] == [
        ("length", 49.0, 50.0, "words is below the minimum"),
        ("lines", 4.0, 3.0, "lines is above the maximum"),
    ]
    assert [(f.rule, f.value, f.threshold, f.detail) for f in second] == [
        ("length", 101.0, 100.0, "words is above the maximum")
    ]


@pytest.mark.parametrize(("rules", "documents"), [(0, 3), (2, 0), (0, 0)])
def test_no_rules_or_no_documents_is_no_fault(rules: int, documents: int) -> None:
    named = [Rule(name=f"r{number}", signal="words", minimum=1) for number in range(rules)]
    decisions = decide(named, np.zeros((documents, 1)), ["words"], [BOOK] * documents)
    assert decisions.failed_DR.shape == (documents, rules)
    assert not decisions.failed_DR.any()


@pytest.mark.parametrize("seed", range(40))
def test_it_says_what_a_loop_over_documents_and_rules_says(seed: int) -> None:
    chance = random.Random(seed)
    names, values = ["a", "b", "c"], [NAN, -1.0, 0.0, 0.5, 1.0, 2.0]
    rules = [_any_rule(chance, names) for _ in range(chance.randrange(1, 12))]
    scopes = [
        (chance.choice("st"), chance.choice(["book", "code"]), chance.choice(["en", "zh", "de"]))
        for _ in range(chance.randrange(1, 30))
    ]
    signals_DS = np.array([[chance.choice(values) for _ in names] for _ in scopes])
    decisions = decide(rules, signals_DS, names, scopes)
    for document, scope in enumerate(scopes):
        expected = _failed(rules, dict(zip(names, signals_DS[document].tolist(), strict=True)), scope)
        failed = decisions.failed_DR[document]
        assert {name for name, fails in zip(decisions.names, failed, strict=True) if fails} == expected
        assert {finding.rule for finding in decisions.findings(document, failed)} == expected


def _any_rule(chance: random.Random, signals: list[str]) -> Rule:
    bounds = sorted(chance.choice([-1.0, 0.0, 0.5, 1.0]) for _ in range(2))
    kind = chance.randrange(4)
    only_code = chance.randrange(3) == 0
    return Rule(
        name=f"rule_{chance.randrange(4)}",
        signal=chance.choice([*signals, "unmeasured"]),
        off=kind == 0,
        minimum=bounds[0] if kind in (1, 2) else None,
        maximum=bounds[1] if kind in (2, 3) else None,
        only_sources=chance.choice([None, None, ["s"]]),
        only_kinds=["code"] if only_code else None,
        except_kinds=["code"] if not only_code and chance.randrange(3) == 0 else [],
        only_languages=chance.choice([None, None, ["en", "zh"]]),
        except_languages=chance.choice([[], [], ["zh"]]),
    )


def _failed(rules: Sequence[Rule], signals: dict[str, float], scope: Scope) -> set[str]:
    failed = set()
    for name in {rule.name for rule in rules}:
        for rule in reversed([rule for rule in rules if rule.name == name]):
            if not rule.judges(*scope):
                continue
            value = signals.get(rule.signal or "")
            low = rule.minimum is not None and value is not None and value < rule.minimum
            high = rule.maximum is not None and value is not None and value > rule.maximum
            if not rule.off and (low or high):
                failed.add(name)
            break
    return failed


def test_a_verdict_depends_on_the_document_and_not_on_those_that_share_its_batch(
    layer: Callable[..., Path],
) -> None:
    """A signal that no document of a batch has must not hand the decision to another entry."""
    params = CleanParams(
        presets=[],
        rules=[
            Rule(name="doubtful", signal="words", minimum=50),
            Rule(name="doubtful", signal="toxicity", maximum=0.5, only_languages=["en"]),
            Rule(name="rude", signal="lexicon_en_rate", maximum=1),
        ],
        mask=[],
    )
    clean = layer(
        {"text": "short and friendly", "signals": {"words": 3.0}},
        {"text": "short and harsh", "signals": {"words": 3.0, "toxicity": 0.9}},
        {"text": "kurz", "language": "de", "signals": {"words": 1.0}},
        {"text": "rude", "language": "fr", "signals": {"words": 70.0, "lexicon_en_rate": 2.0}},
    )
    (whole,) = pq.read_table(clean / "documents").combine_chunks().to_batches()
    together = judge_batch(whole, Judge(params)).to_pylist()
    alone = [judge_batch(whole.slice(n, 1), Judge(params)).to_pylist()[0] for n in range(4)]
    assert together == alone
    rules = {row["text"]: [finding["rule"] for finding in row["findings"]] for row in together}
    assert rules == {
        "short and friendly": [],
        "short and harsh": ["doubtful"],
        "kurz": ["doubtful"],
        "rude": ["rude"],
    }
