"""The verdict of every rule, held against what datatrove and TFDS said of the same texts and segments.

`python -m benchmarks.golden_quality` writes the golden file by running both.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.policies.decide import Decisions, decide
from tasks.corpus.policies.presets import PRESETS
from tasks.corpus.policies.rules import Rule
from tasks.corpus.scoring.c4 import keep_lines
from tasks.corpus.scoring.measure import SIGNALS, measure

GOLDEN = Path(__file__).with_name("golden") / "quality.jsonl.gz"

GOPHER = {
    "gopher_duplicate_paragraph_share": "dup_para_frac",
    "gopher_duplicate_paragraph_character_share": "dup_para_char_frac",
    "gopher_duplicate_line_share": "dup_line_frac",
    "gopher_duplicate_line_character_share": "dup_line_char_frac",
    **{f"gopher_top_{n}_gram_character_share": f"top_{n}_gram" for n in range(2, 5)},
    **{f"gopher_duplicate_{n}_gram_character_share": f"dup_{n}_gram" for n in range(5, 11)},
    "gopher_hashes": "max_symbol_word_ratio",
    "gopher_bullet_lines": "max_bullet_lines_ratio",
    "gopher_ellipsis_lines": "max_ellipsis_lines_ratio",
    "gopher_alphabetic_words": "max_non_alpha_words_ratio",
}
"""Our rule, and datatrove's name for it."""


@cache
def golden() -> list[dict[str, Any]]:
    with gzip.open(GOLDEN, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@cache
def measured() -> np.ndarray:
    texts = pa.array([row["text"] for row in golden()])
    return measure(texts, ["en"] * len(texts))


@cache
def decisions(preset: str) -> Decisions:
    rules = [rule for rule in PRESETS[preset].rules if rule.signal in SIGNALS]
    return decide(rules, measured(), SIGNALS, [("s", "web", "en")] * len(golden()))


def failing(preset: str, *rules: str) -> set[int]:
    """Which texts fail one of the rules of a preset."""
    made = decisions(preset)
    columns = [made.names.index(rule) for rule in rules]
    return set(np.flatnonzero(made.failed_DR[:, columns].any(axis=1)).tolist())


def told(*reasons: str) -> set[int]:
    """Which texts fail one of the peer's rules."""
    return {number for number, row in enumerate(golden()) if set(reasons) & set(row["datatrove"])}


def test_there_are_texts_on_both_sides_of_every_rule() -> None:
    for rule, reason in GOPHER.items():
        if rule != "gopher_ellipsis_lines":
            assert 3 <= len(told(reason)) <= len(golden()) - 3, rule


@pytest.mark.parametrize("rule", [rule for rule in GOPHER if rule != "gopher_hashes"])
def test_gopher(rule: str) -> None:
    assert failing("gopher", rule) == told(GOPHER[rule])


def test_gopher_symbols() -> None:
    assert failing("gopher", "gopher_hashes", "gopher_ellipses") == told("max_symbol_word_ratio")


def test_gopher_words() -> None:
    assert failing("gopher", "gopher_words") == told("min_doc_words", "max_doc_words")


def test_gopher_word_length() -> None:
    # A text of symbols alone has no mean; datatrove lets it pass this rule, here its words are 0 long.
    apart = failing("gopher", "gopher_word_length") ^ told("min_avg_word_length", "max_avg_word_length")
    signals_DS = decisions("gopher").values_DR[:, decisions("gopher").names.index("gopher_words")]
    assert all(signals_DS[number] == 0 for number in apart)


def test_gopher_stop_words_are_found_in_capitals_too() -> None:
    ours, theirs = failing("gopher", "gopher_stop_words"), told("min_stop_words")
    assert ours <= theirs
    for number in theirs - ours:
        text = golden()[number]["text"]
        assert text != text.lower()


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (Rule(name="punctuation", signal="terminal_line_share", minimum=0.12), "line_punct_thr"),
        (Rule(name="short", signal="short_line_share", maximum=0.67), "short_line_thr"),
        (Rule(name="repeated", signal="repeated_line_character_share", maximum=0.01), "char_dup_code"),
        (Rule(name="repeated", signal="repeated_line_character_share", maximum=0.1), "char_dup_paper"),
        (Rule(name="newlines", signal="newline_to_word_ratio", maximum=0.3), "new_line_ratio"),
    ],
    ids=str,
)
def test_fineweb_on_the_text_as_it_is(rule: Rule, reason: str) -> None:
    made = decide([rule], measured(), SIGNALS, [("s", "web", "en")] * len(golden()))
    assert set(np.flatnonzero(made.failed_DR[:, 0]).tolist()) == told(reason)
    assert told(reason)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("fineweb_terminal_lines", "edited_line_punct_thr"),
        ("fineweb_short_lines", "edited_short_line_thr"),
        ("fineweb_newlines", "edited_new_line_ratio"),
    ],
)
def test_fineweb_on_the_lines_that_c4_leaves(rule: str, reason: str) -> None:
    judged = pages_left()
    assert len(judged) > 200
    assert failing("fineweb_code", rule) & judged == told(reason) & judged


@pytest.mark.parametrize(
    ("preset", "reason"),
    [("fineweb_code", "edited_char_dup_code"), ("fineweb_paper", "edited_char_dup_paper")],
)
def test_fineweb_repeated_lines(preset: str, reason: str) -> None:
    judged = pages_left()
    assert failing(preset, "fineweb_repeated_line_characters") & judged == told(reason) & judged
    assert told(reason) & judged


def pages_left() -> set[int]:
    """Pages that datatrove's C4 filter edits; one that it drops it hands on as it was."""
    dropped = told("c4_fineweb: lorem_ipsum", "c4_fineweb: curly_bracket", "c4_fineweb: too_few_sentences")
    return set(range(len(golden()))) - dropped


@pytest.mark.parametrize("variant", ["c4_datatrove", "c4_fineweb"])
def test_c4_of_datatrove(variant: str) -> None:
    preset = {"c4_datatrove": "c4_datatrove", "c4_fineweb": "fineweb_code"}[variant]
    ours = failing(preset, "c4_lorem_ipsum", "c4_curly_bracket", "c4_sentences")
    theirs = told(*(f"{variant}: {why}" for why in ("lorem_ipsum", "curly_bracket", "too_few_sentences")))
    assert ours == theirs
    assert failing(preset, "c4_sentences") >= told(f"{variant}: too_few_sentences")


def test_c4_of_tfds() -> None:
    theirs = {number for number, row in enumerate(golden()) if row["tfds"]["verdict"] != "kept"}
    assert failing("c4_tfds", "c4_lorem_ipsum", "c4_curly_bracket", "c4_sentences") == theirs
    assert 10 < len(theirs) < len(golden()) - 10


def test_the_lines_that_tfds_keeps_are_the_lines_kept() -> None:
    kept = [row for row in golden() if row["tfds"]["verdict"] == "kept"]
    assert [keep_lines(row["text"], "c4_tfds") for row in kept] == [row["tfds"]["text"] for row in kept]
