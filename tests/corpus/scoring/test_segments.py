"""The compiled segmentation, held against one in plain Python."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest

from tasks.code import ROOT
from tasks.corpus.scoring.measure import SIGNALS, measure
from tasks.corpus.scoring.segments import segment_words, word_hash

VOCABULARY = [
    word
    for line in (
        "the|sea|Sea's|don't|e.g.|end.Next|U.S.A.|3.14|1,000|1,a|well-known|cafe\u0301|naïve|#|##|…|...|--|•|*{[3]",
        "人工智能|カタカナ|การทดสอบ|привет!|foo_bar|__|a.b.c.|x=1;|🙂🙂|’tis|٣٫١|²³|\u200bzero|\ufeff|\u00a0|\u3000",
        "i\u0307|ﬁ|𠀀𠀁|",
    )
    for word in line.split("|")
]


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    """The segmentation that the peers of the benchmarks are given."""
    path = ROOT / "benchmarks" / "peers" / "segmentation.py"
    specification = importlib.util.spec_from_file_location("segmentation", path)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def random_texts(count: int) -> list[str]:
    rng = random.Random(1)
    glue = ["", " ", " ", " ", "\n", "\n\n", "\t", "-", ".", ",", "'"]
    return [
        "".join(rng.choice(VOCABULARY) + rng.choice(glue) for _ in range(rng.randint(0, 60)))
        for _ in range(count)
    ]


def words_of(texts: list[str]) -> list[list[str]]:
    words = segment_words(pa.array(texts, pa.string()))
    found = []
    for number, text in enumerate(texts):
        raw = text.encode()
        spans = range(words.offsets_D1[number], words.offsets_D1[number + 1])
        found.append([raw[words.starts_W[i] : words.ends_W[i]].decode() for i in spans])
    return found


def test_words_are_the_segments_that_are_no_symbols(plain: ModuleType) -> None:
    texts = random_texts(300)
    expected = [[word for word in plain.words(text) if any(map(plain._word, word))] for text in texts]
    assert words_of(texts) == expected


def test_segments_and_sentences_are_counted_alike(plain: ModuleType) -> None:
    texts = random_texts(300)
    from tasks.corpus.scoring.characters import TERMINAL, character_flags

    terminal = frozenset(chr(code) for code in np.flatnonzero(character_flags() & TERMINAL))
    signals_DS = measure(pa.array(texts), ["en"] * len(texts))
    columns = [SIGNALS.index("segments"), SIGNALS.index("sentences")]
    expected = [[len(plain.words(text)), len(plain.sentences(text, terminal))] for text in texts]
    assert signals_DS[:, columns].tolist() == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop, it’s", ["don't", "stop", "it’s"]),
        ("人工智能", ["人", "工", "智", "能"]),
        ("end.Next e.g. 3.14", ["end", "Next", "e.g", "3.14"]),
        ("foo_bar -- (x)", ["foo_bar", "x"]),
        ("", []),
        ("...", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of([text]) == [words]


def test_a_word_is_hashed_without_case() -> None:
    assert word_hash("Ship") == word_hash("SHIP") != word_hash("shop")


def test_a_null_and_a_slice_of_a_larger_array_are_read_right() -> None:
    texts = pa.array(["skipped here", "one two", None, "three"])[1:]
    words = segment_words(texts)
    assert np.diff(words.offsets_D1).tolist() == [2, 0, 1]
    assert words.hashes_W[2] == word_hash("three")


def test_large_strings_give_the_same() -> None:
    texts = random_texts(20)
    small, large = segment_words(pa.array(texts)), segment_words(pa.array(texts, pa.large_string()))
    assert (small.hashes_W == large.hashes_W).all()


def test_a_batch_does_not_change_what_is_measured_of_its_documents() -> None:
    texts = random_texts(50)
    together = measure(pa.array(texts), ["en"] * 50)
    alone = np.concatenate([measure(pa.array([text]), ["en"]) for text in texts])
    assert (together == alone).all()


def test_a_document_of_five_million_words_is_measured() -> None:
    text = "word " * 5_000_000
    (signals,) = measure(pa.array([text]), ["en"])
    assert signals[SIGNALS.index("words")] == 5_000_000
    assert signals[SIGNALS.index("duplicate_5_gram_character_share")] > 0.7


def test_the_plain_segmentation_imports_nothing_of_the_project() -> None:
    source = (Path(ROOT) / "benchmarks" / "peers" / "segmentation.py").read_text("utf-8")
    assert "from tasks" not in source
    assert "import numpy" not in source
