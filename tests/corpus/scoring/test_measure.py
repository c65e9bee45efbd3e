"""Signals of single texts: what faults of other systems taught."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tasks.code import ROOT
from tasks.corpus.scoring.c4 import keep_lines
from tasks.corpus.scoring.columns import signals_column, signals_matrix
from tasks.corpus.scoring.measure import SIGNALS, measure
from tasks.corpus.scoring.stop_words import MOST_STOP_WORDS, STOP_WORDS

MEASURES_EDGES = r"""
import random
import pyarrow as pa
from tasks.corpus.scoring.c4 import keep_lines
from tasks.corpus.scoring.measure import measure
from tasks.corpus.scoring.segments import segment_words

rng = random.Random(1)
texts = ["", "x", "a\n\n\n", "人", "\n", " ", "[", "[3", "l", "use cookie", ".", "..", "a.b", "a'"]
texts += ["\n".join(rng.choices(texts, k=rng.randint(1, 9))) for _ in range(300)]
for text in texts:
    measure(pa.array([text]), [rng.choice(["en", "zh", "xx"])])
    segment_words(pa.array([text]))
    keep_lines(text, "c4_tfds")
measure(pa.array(texts), ["pl"] * len(texts))
"""
"""A program that measures texts of all lengths and ends."""


def signals(text: str, language: str = "en") -> dict[str, Any]:
    (values,) = measure(pa.array([text]), [language])
    return dict(zip(SIGNALS, values.tolist(), strict=True))


def test_blank_lines_are_no_duplicate_lines() -> None:
    found = signals("a\n\n\n\nb")
    assert found["duplicate_line_share"] == 0
    assert found["lines"] == 2


def test_repeated_lines_are_counted_without_their_first() -> None:
    found = signals("spam\nspam\nspam\neggs")
    assert found["duplicate_line_share"] == 0.5
    assert found["duplicate_line_character_share"] == 8 / 19


def test_the_same_words_in_another_order_are_another_n_gram() -> None:
    assert signals("a b c d e f g h")["top_2_gram_character_share"] == 3 / 15
    assert signals("a b b a c d c d")["top_2_gram_character_share"] == 6 / 15


@pytest.mark.parametrize(
    "text", ["THE SHIP AND THE SEA, THAT WAS TO BE", "The ship and the sea, that was to be"]
)
def test_stop_words_are_found_in_any_case(text: str) -> None:
    assert signals(text)["stop_words"] == 5


@pytest.mark.parametrize("language", sorted(STOP_WORDS))
def test_the_stop_words_of_a_language_are_found_in_it(language: str) -> None:
    words = STOP_WORDS[language].split()
    assert signals(" ".join(words), language)["stop_words"] == len(words)
    assert signals("xyzzy", language)["stop_words"] == 0


def test_no_language_has_more_stop_words_than_there_is_room_for() -> None:
    assert max(len(words.split()) for words in STOP_WORDS.values()) <= MOST_STOP_WORDS


@pytest.mark.slow
def test_no_loop_reads_or_writes_beyond_its_arrays(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", MEASURES_EDGES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_language_without_stop_words_is_not_measured() -> None:
    assert np.isnan(signals("the ship", "tlh")["stop_words"])


@pytest.mark.parametrize("text", ["人工智能是工程和科学的分支" * 23, "การทดสอบภาษาไทย" * 20])
def test_a_text_without_spaces_is_not_one_word(text: str) -> None:
    found = signals(text, "zh")
    assert found["words"] == len(text)
    assert found["unsegmented_word_share"] == 1


def test_an_empty_text_has_every_signal() -> None:
    found = signals("")
    assert [name for name, value in found.items() if value != 0] == []


def test_a_citation_goes_and_a_line_is_trimmed() -> None:
    text = "  This line has enough words.[3]  \nshort line.\nThis one was cited too.[citation needed]"
    assert keep_lines(text, "c4_tfds") == "This line has enough words.\nThis one was cited too."


def test_signals_come_back_from_the_column_as_they_went_in() -> None:
    values_DS = np.array([[1.0, np.nan], [0.0, 3.5], [np.nan, np.nan]])
    names, found_DS = signals_matrix(signals_column(["a", "b"], values_DS))
    assert names == ["a", "b"]
    assert np.array_equal(found_DS, values_DS, equal_nan=True)
    assert np.array_equal(
        signals_matrix(signals_column(["a", "b"], values_DS)[1:])[1], values_DS[1:], equal_nan=True
    )
