from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from tasks.corpus.policies.decide import decide
from tasks.corpus.policies.policy import CleanParams, LexiconAction
from tasks.corpus.policies.presets import PRESETS, PresetName
from tasks.corpus.policies.rules import Rule
from tasks.corpus.scoring.parts import FIXED_SIGNALS
from tasks.parameters import ParameterError, validate


def bounds(params: CleanParams, kind: str, language: str, source: str = "docs") -> dict[str, tuple]:
    """Rule → (minimum, maximum) for the documents of a scope; a rule that judges none is left out."""
    names = list(FIXED_SIGNALS)
    held = decide(params.all_rules, np.zeros((1, len(names))), names, [(source, kind, language)])
    found = {}
    for number, name in enumerate(held.names):
        pair = (held.minimum_DR[0, number], held.maximum_DR[0, number])
        shown = tuple(None if np.isnan(bound) else float(bound) for bound in pair)
        if shown != (None, None):
            found[name] = shown
    return found


@pytest.mark.parametrize("name", get_args(PresetName))
def test_every_preset_is_a_policy_of_signals_that_are_measured(name: PresetName) -> None:
    params = CleanParams(presets=[name])
    assert {rule.signal for rule in params.all_rules} <= set(FIXED_SIGNALS)
    assert len({rule.name for rule in params.all_rules}) >= 3


def test_every_name_has_its_preset() -> None:
    assert set(get_args(PresetName)) == set(PRESETS)


def test_gopher_has_the_published_bounds() -> None:
    held = bounds(CleanParams(presets=["gopher"]), "web", "en")
    assert held["gopher_words"] == (50, 100_000)
    assert held["gopher_word_length"] == (3, 10)
    assert held["gopher_alphabetic_words"] == (0.8, None)
    assert held["gopher_stop_words"] == (2, None)
    table = {"gopher_duplicate_line_share": 0.3, "gopher_duplicate_paragraph_character_share": 0.2,
             "gopher_top_2_gram_character_share": 0.2, "gopher_top_4_gram_character_share": 0.16,
             "gopher_duplicate_5_gram_character_share": 0.15,
             "gopher_duplicate_10_gram_character_share": 0.1}  # fmt: skip
    assert {name: held[name] for name in table} == {name: (None, most) for name, most in table.items()}


def test_finewebs_code_and_paper_differ_in_one_bound() -> None:
    code = bounds(CleanParams(presets=["fineweb_code"]), "web", "en")
    paper = bounds(CleanParams(presets=["fineweb_paper"]), "web", "en")
    assert {name: (code[name], paper[name]) for name in code if code[name] != paper[name]} == {
        "fineweb_repeated_line_characters": ((None, 0.01), (None, 0.1))
    }
    assert code.keys() == paper.keys()


def test_the_multilingual_preset_asks_of_a_text_what_fits_its_kind_and_language() -> None:
    held = {scope: bounds(CleanParams(), *scope) for scope in
            [("web", "en"), ("web", "zh"), ("reference", "en"), ("code", "zxx")]}  # fmt: skip
    assert held["code", "zxx"] == {"gopher_words": (50, 100_000)}
    word_length = {scope: rules.get("gopher_word_length") for scope, rules in held.items()}
    assert word_length == {("web", "en"): (2, 12), ("web", "zh"): (1, 12), ("reference", "en"): (2, 12),
                           ("code", "zxx"): None}  # fmt: skip
    assert held["web", "en"]["gopher_alphabetic_words"] == (0.6, None)
    assert held["reference", "en"]["gopher_alphabetic_words"] == (0.5, None)
    grams = {scope: sum("gram" in rule for rule in rules) for scope, rules in held.items()}
    assert grams == {("web", "en"): 9, ("web", "zh"): 0, ("reference", "en"): 0, ("code", "zxx"): 0}


def test_rules_of_several_presets_all_apply() -> None:
    one = bounds(CleanParams(presets=["gopher"]), "web", "en")
    other = bounds(CleanParams(presets=["c4_tfds"]), "web", "en")
    both = bounds(CleanParams(presets=["gopher", "c4_tfds"]), "web", "en")
    assert both == one | other


def test_where_presets_name_the_same_rule_the_last_one_decides() -> None:
    forth = bounds(CleanParams(presets=["c4_tfds", "c4_datatrove"]), "web", "en")
    back = bounds(CleanParams(presets=["c4_datatrove", "c4_tfds"]), "web", "en")
    assert (forth["c4_sentences"], back["c4_sentences"]) == ((5, None), (3, None))


@pytest.mark.parametrize(
    ("presets", "line_rule"),
    [
        ([], None),
        (["gopher"], None),
        (["c4_tfds"], "c4_tfds"),
        (["c4_tfds", "gopher"], "c4_tfds"),
        (["c4_tfds", "fineweb_paper"], "c4_fineweb"),
        (["fineweb_code", "c4_datatrove", "multilingual"], "c4_datatrove"),
    ],
)
def test_lines_are_edited_by_the_last_preset_that_has_a_line_rule(
    presets: list[PresetName], line_rule: str | None
) -> None:
    assert CleanParams(presets=presets).line_rule == line_rule
    assert CleanParams(presets=presets, edit_lines=False).line_rule is None


def test_a_persons_rules_come_after_the_presets() -> None:
    params = CleanParams(
        rules=[
            Rule(name="gopher_words", minimum=10, only_sources=["lists"]),
            Rule(name="gopher_alphabetic_words", off=True, only_languages=["zh"]),
            Rule(name="clean_speech", signal="toxicity", maximum=0.5),
        ]
    )
    assert bounds(params, "web", "en", "lists")["gopher_words"] == (10, None)
    assert bounds(params, "web", "en")["gopher_words"] == (50, 100_000)
    assert "gopher_alphabetic_words" not in bounds(params, "web", "zh")
    assert bounds(params, "web", "en")["clean_speech"] == (None, 0.5)


def test_a_list_that_drops_is_a_rule_on_its_rate() -> None:
    params = CleanParams(
        presets=[],
        lexicons=[
            LexiconAction(lexicon="en", action="drop", minimum_rate=2.5),
            LexiconAction(lexicon="zh", action="mask"),
            LexiconAction(lexicon="de"),
        ],
    )
    assert [(rule.name, rule.signal, rule.maximum) for rule in params.all_rules] == [
        ("lexicon_en", "lexicon_en_rate", 2.5)
    ]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"rules": [{"name": "r", "signal": "wrods", "minimum": 1}]},
            "no signal `wrods`; did you mean `words`",
        ),
        ({"rules": [{"name": "gopher_wrods", "minimum": 1}]}, "gopher_wrods: `signal` is missing"),
        ({"presets": ["gofer"]}, "`presets.0`: Input should be 'gopher'"),
        ({"lexicons": [{"lexicon": "en"}, {"lexicon": "en"}]}, "a list has one action; named twice: en"),
        ({"perplexity_buckets": [0.7, 0.3]}, "two shares between 0 and 1, ascending"),
        (
            {"perplexity_buckets": [float("nan"), 0.3]},
            "`perplexity_buckets.0`: Input should be a finite number",
        ),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(given: dict, complaint: str) -> None:
    with pytest.raises(ParameterError, match=complaint):
        validate(given, CleanParams, "params.yaml: clean")


@pytest.mark.parametrize("name", ["empty", "language", "perplexity_bucket", "pii_email", "lexicon_en"])
def test_a_rule_may_not_have_the_name_of_what_clean_says_itself(name: str) -> None:
    with pytest.raises(ValueError, match=f"rule {name}: clean itself says this in the ledger"):
        CleanParams(rules=[Rule(name=name, signal="words", minimum=1)])
