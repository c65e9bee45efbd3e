from __future__ import annotations

import gzip
import itertools
import json
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from tasks.code import ROOT
from tasks.corpus.deduplication.tfidf import (
    SparseVectors,
    cosines,
    document_frequencies,
    prefix_keys,
    vectors,
)
from tasks.corpus.scoring.segments import Words, segment_words

THRESHOLDS = pytest.mark.parametrize("threshold", [0.5, 0.9, 0.97, 1.0])
SLOTS = 2**26


def sample() -> list[str]:
    """The beginnings of real documents, and edited copies of some of them."""
    texts = []
    for path in sorted((ROOT / "sample" / "corpus").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts += [json.loads(line)["raw"][:1500] for line in itertools.islice(lines, 40)]
    coin = random.Random(7)
    for text in texts[::6]:
        for share in (0.01, 0.05, 0.2):
            words = text.split(" ")
            texts.append(" ".join(coin.choice(words) if coin.random() < share else word for word in words))
    return texts


def words_of(*texts: str | None) -> Words:
    return segment_words(pa.array(texts, pa.string()))


def vectors_of(texts: list[str], slots: int = 2**16) -> tuple[SparseVectors, np.ndarray]:
    words = words_of(*texts)
    frequencies = document_frequencies(words, slots)
    return vectors(words, frequencies, len(texts)), frequencies


def chosen(found: SparseVectors, documents: list[int]) -> SparseVectors:
    """The vectors of these documents, back to back."""
    bounds = [(found.offsets_D1[d], found.offsets_D1[d + 1]) for d in documents]
    places = np.concatenate([np.arange(a, b) for a, b in bounds] or [np.empty(0, np.int64)]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum([b - a for a, b in bounds], dtype=np.int64)])
    return SparseVectors(found.terms_T[places], found.weights_T[places], offsets)


def all_cosines(found: SparseVectors) -> tuple[list[tuple[int, int]], np.ndarray]:
    pairs = list(itertools.combinations(range(len(found.offsets_D1) - 1), 2))
    left, right = ([pair[side] for pair in pairs] for side in (0, 1))
    return pairs, cosines(chosen(found, left), chosen(found, right))


def sharing_a_key(keys_K: np.ndarray, offsets_D1: np.ndarray) -> set[tuple[int, int]]:
    buckets: dict[int, list[int]] = {}
    for d, (begin, end) in enumerate(itertools.pairwise(offsets_D1.tolist())):
        for key in keys_K[begin:end].tolist():
            buckets.setdefault(key, []).append(d)
    return {pair for bucket in buckets.values() for pair in itertools.combinations(bucket, 2)}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return sample()


def test_cosines_are_those_of_scikit_learn(texts: list[str]) -> None:
    words = words_of(*texts)
    terms = np.unique(words.hashes_W)
    frequencies = document_frequencies(words, SLOTS)
    assert (frequencies > 0).sum() == len(terms), "two words share a slot: take more slots"
    bounds = list(itertools.pairwise(words.offsets_D1.tolist()))
    tokens = [[str(item) for item in words.hashes_W[begin:end].tolist()] for begin, end in bounds]
    analyzer: Any = tuple  # what is given is cut already
    theirs = TfidfVectorizer(analyzer=analyzer).fit_transform(tokens)
    pairs, found = all_cosines(vectors(words, frequencies, len(texts)))
    expected = (theirs @ theirs.T).toarray()
    assert found == pytest.approx([expected[pair] for pair in pairs], abs=1e-12)
    assert (found > 0.9).sum() > 20


@THRESHOLDS
def test_all_pairs_of_the_threshold_share_a_key_and_few_others_do(texts: list[str], threshold: float) -> None:
    copies = [*texts, texts[0], texts[5] + " "]
    found, frequencies = vectors_of(copies)
    candidates = sharing_a_key(*prefix_keys(found, frequencies, threshold))
    pairs, values = all_cosines(found)
    alike = {pair for pair, value in zip(pairs, values.tolist(), strict=True) if value >= threshold - 1e-12}
    assert len(alike) >= 2
    assert alike <= candidates
    if threshold >= 0.9:
        assert len(candidates) < 0.15 * len(pairs)


@pytest.mark.parametrize("seed", range(20))
@THRESHOLDS
def test_no_pair_is_missed_among_texts_of_few_words(seed: int, threshold: float) -> None:
    coin = random.Random(seed)
    texts = [" ".join(coin.choices("abcdefgh", k=coin.randint(1, 12))) for _ in range(60)]
    found, frequencies = vectors_of(texts, slots=2 ** (seed % 5))  # few slots: most words share one
    candidates = sharing_a_key(*prefix_keys(found, frequencies, threshold))
    pairs, values = all_cosines(found)
    missed = [pair for pair, value in zip(pairs, values, strict=True) if value >= threshold - 1e-12]
    assert set(missed) <= candidates


def test_a_document_without_words_has_no_vector_and_no_key_and_is_like_no_other() -> None:
    words = words_of("", None, "!!!", "a b")
    frequencies = document_frequencies(words, 16)
    found = vectors(words, frequencies, 4)
    assert found.offsets_D1.tolist() == [0, 0, 0, 0, 2]
    assert prefix_keys(found, frequencies, 0.9)[1].tolist()[:4] == [0, 0, 0, 0]
    assert cosines(chosen(found, [0, 0, 3]), chosen(found, [1, 3, 3])).tolist() == [0, 0, pytest.approx(1)]


def test_frequencies_of_batches_add_up_and_cuts_and_order_do_not_show(texts: list[str]) -> None:
    whole, frequencies = vectors_of(texts)
    parts = [texts[i : i + 7] for i in range(0, len(texts), 7)]
    counted = [document_frequencies(words_of(*part), 2**16) for part in parts]
    assert (np.sum(counted, axis=0) == frequencies).all()
    keys, bounds = prefix_keys(whole, frequencies, 0.9)
    for number, part in reversed(list(enumerate(parts))):
        found = vectors(words_of(*part), frequencies, len(texts))
        expected = chosen(whole, list(range(number * 7, number * 7 + len(part))))
        assert (found.terms_T == expected.terms_T).all()
        assert (found.weights_T == expected.weights_T).all()
        first = bounds[number * 7]
        part_keys, part_bounds = prefix_keys(found, frequencies, 0.9)
        assert (part_keys == keys[first : first + len(part_keys)]).all()
        assert (part_bounds + first == bounds[number * 7 : number * 7 + len(part) + 1]).all()


def test_neither_side_of_a_pair_shows(texts: list[str]) -> None:
    found, _ = vectors_of(texts)
    left, right = chosen(found, list(range(0, 100))), chosen(found, list(range(100, 200)))
    assert (cosines(left, right) == cosines(right, left)).all()


def test_keys_are_the_rarest_words_first() -> None:
    texts = ["common common rare", "common other", "common third"]
    found, frequencies = vectors_of(texts)
    keys, bounds = prefix_keys(found, frequencies, 0.99)
    assert keys[bounds[0]] == words_of("rare").hashes_W[0]


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.01])
def test_a_threshold_that_is_no_cosine_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="must be above 0 and at most 1"):
        prefix_keys(*vectors_of(["a"]), threshold)


@pytest.mark.parametrize("slots", [0, 3, -4])
def test_a_table_that_is_no_power_of_two_is_refused(slots: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        document_frequencies(words_of("a"), slots)
