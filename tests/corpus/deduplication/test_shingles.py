from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.deduplication.segments import Features
from tasks.corpus.deduplication.shingles import Shingles, shingle
from tasks.corpus.deduplication.similarity import similarities
from tasks.corpus.scoring.segments import segment_words


def sets_of(*texts: str, size: int = 5) -> list[set[int]]:
    sets = shingle(segment_words(pa.array(texts, pa.string())), size)
    bounds = sets.offsets_D1.tolist()
    return [set(sets.hashes_S[begin:end].tolist()) for begin, end in itertools.pairwise(bounds)]


def features(shingles: Shingles) -> Features:
    return Features.back_to_back(shingles.hashes_S, shingles.offsets_D1)


def hashes_of(*shingles: str) -> set[int]:
    """By Horner's rule in Python's integers, and the mixing of the last step."""
    found = set()
    for words in (segment_words(pa.array([text])).hashes_W.tolist() for text in shingles):
        polynomial = 0
        for word in words:
            polynomial = (polynomial * 0x9E3779B97F4A7C15 + word) % 2**64
        hashed = (polynomial ^ (polynomial >> 32)) * 0xBF58476D1CE4E5B9 % 2**64
        found.add(hashed ^ (hashed >> 29))
    return found


def test_a_text_is_the_set_of_its_runs_of_words() -> None:
    assert sets_of("One, two: three. One two three!", size=2) == [
        hashes_of("one two", "two three", "three one")
    ]


def test_a_short_text_is_one_shingle_and_a_text_without_words_none() -> None:
    assert sets_of("Cat", "the cat", "!!!", "") == [hashes_of("cat"), hashes_of("the cat"), set(), set()]


@pytest.mark.parametrize(
    ("text", "shingles"),
    [
        ("人工智能是工程", ("人 工 智 能 是", "工 智 能 是 工", "智 能 是 工 程")),
        ("ภาษาไทย", ("ภ า ษ า ไ", "า ษ า ไ ท", "ษ า ไ ท ย")),
    ],
)
def test_scripts_without_spaces_are_shingled_by_character(text: str, shingles: tuple[str, ...]) -> None:
    assert sets_of(text) == [hashes_of(*shingles)]


def test_shingles_are_of_each_text_alone_wherever_a_batch_is_cut() -> None:
    texts = pa.array(["a b c d e f g a b c d e", "", "x y z", "a b c d e f"])
    whole = shingle(segment_words(texts), 3)
    for start in range(len(texts)):
        part = shingle(segment_words(texts.slice(start)), 3)
        first = whole.offsets_D1[start]
        assert part.hashes_S.tolist() == whole.hashes_S[first:].tolist()
        assert part.offsets_D1.tolist() == (whole.offsets_D1[start:] - first).tolist()


@pytest.mark.parametrize("measure", ["jaccard", "containment"])
def test_similarity_is_that_of_the_sets(measure) -> None:
    lefts = ["a b c d e f", "a b c d", "q r s", "", "a b", "a b a b a b", "x " * 99]
    rights = ["b c d e f g h", "a b c d", "x y z", "", "a b c d e f g h", "b a b", "x x x"]
    shingles = shingle(segment_words(pa.array([*lefts, *rights], pa.string())), 2)
    left, right = np.arange(len(lefts)), np.arange(len(lefts)) + len(lefts)
    found = similarities(features(shingles), left, right, measure)
    for value, one, other in zip(found, sets_of(*lefts, size=2), sets_of(*rights, size=2), strict=True):
        whole = min(len(one), len(other)) if measure == "containment" else len(one | other)
        assert value == (len(one & other) / whole if whole else 0.0)


def test_pairs_of_one_document_are_compared_with_its_own_shingles() -> None:
    texts = ["a b c d e", "a b c d x", "x y z u v", "a b c d e f"]
    shingles = shingle(segment_words(pa.array(texts)), 2)
    pairs = np.array([(0, 1), (0, 2), (0, 3), (2, 1), (0, 1), (1, 3)])
    sets = sets_of(*texts, size=2)
    expected = [len(sets[i] & sets[j]) / len(sets[i] | sets[j]) for i, j in pairs]
    assert similarities(features(shingles), pairs[:, 0], pairs[:, 1], "jaccard").tolist() == expected
