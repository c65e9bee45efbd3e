from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.profiling.word_features import UNIT, bags, ngram_hashes, ngrams_of
from tasks.corpus.scoring.segments import segment_words

ALL = np.uint64(2**64 - 1)


def hashes(texts: list[str], n: int, limit: np.uint64 = ALL) -> list[int]:
    words = segment_words(pa.array(texts, pa.string()))
    return ngram_hashes(words, np.arange(len(texts)), n, limit).tolist()


def cosine(left: str, right: str) -> float:
    one, other = bags(segment_words(pa.array([left, right])))
    return float(one @ other) / UNIT**2


def test_ngrams_are_runs_of_words_within_a_document():
    assert len(hashes(["a b c", "d e", "f", ""], 2)) == 3
    words = segment_words(pa.array(["a b c", "d e", "f", ""]))
    assert [ngrams_of(words, np.arange(4), n) for n in (1, 2, 3)] == [6, 3, 1]


def test_the_same_words_are_the_same_ngram_whatever_their_case_and_place():
    assert set(hashes(["the old mill"], 3)) == set(hashes(["(The OLD  mill!)"], 3))
    assert hashes(["old mill"], 2) != hashes(["mill old"], 2)


def test_ngrams_above_the_limit_are_left_out():
    every = hashes(["one two three four five six seven eight"], 1)
    middle = np.uint64(sorted(every)[3])
    assert sorted(hashes(["one two three four five six seven eight"], 1, middle)) == sorted(every)[:4]


def test_hashes_of_ngrams_are_uniform():
    found = np.array(hashes([" ".join(f"w{i}" for i in range(20_000))], 2), np.uint64) / 2.0**64
    assert np.histogram(found, 20, (0, 1))[0] == pytest.approx(np.full(20, 1_000), abs=5 * 1_000**0.5)


def test_documents_of_the_same_words_have_the_same_bag_however_often_each_stands_there():
    assert cosine("river mill grain", "Grain, mill, mill; the RIVER river") == pytest.approx(1, abs=0.001)


def test_documents_without_a_word_in_common_are_nearly_orthogonal():
    left = " ".join(f"left{i}" for i in range(300))
    right = " ".join(f"right{i}" for i in range(300))
    assert abs(cosine(left, right)) < 0.1


def test_function_words_make_no_documents_alike():
    assert abs(cosine("the river and the mill", "the code that have been")) < 0.1


def test_a_document_without_words_has_no_direction():
    assert not bags(segment_words(pa.array(["", "... !!", None], pa.string()))).any()


def test_no_documents_have_no_bags():
    assert bags(segment_words(pa.array([], pa.string()))).shape[0] == 0
