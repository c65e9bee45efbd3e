"""N-grams and bags of words of documents, hashed in compiled loops over the words of a batch.

Bags are hashed to a fixed number of dimensions, each word to one of them with a sign, which keeps inner
products on average (Weinberger et al., Feature Hashing for Large Scale Multitask Learning, 2009). A word
counts once in a document, function words do not count. The vectors are unit vectors in fixed point: sums of
integers are the same in any order.
"""

from __future__ import annotations

import functools

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.scoring.hashing import START, extended, hash_table, seen_before
from tasks.corpus.scoring.segments import Words
from tasks.corpus.scoring.stop_words import stop_word_hashes

DIMENSIONS = 1024
"""Of the bags: a power of two."""

UNIT = 2**15
"""The length of a unit vector. The squares of 2³³ documents fit 64 bits."""

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _63 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(63)
_BUCKET = np.uint64(DIMENSIONS - 1)


def ngram_hashes(words: Words, documents_D: np.ndarray, n: int, limit: np.uint64) -> np.ndarray:
    """The hashes (uint64, uniform) up to ``limit`` of all n-grams within the given documents."""
    room = int((words.offsets_D1[documents_D + 1] - words.offsets_D1[documents_D]).sum())
    hashes_N = np.empty(room, np.uint64)
    found = _ngrams(words.hashes_W, words.offsets_D1, documents_D, n, limit, hashes_N)
    return hashes_N[:found]


def ngrams_of(words: Words, documents_D: np.ndarray, n: int) -> int:
    """How many n-grams there are within the given documents."""
    counts = words.offsets_D1[documents_D + 1] - words.offsets_D1[documents_D]
    return int(np.maximum(counts - n + 1, 0).sum())


def bags(words: Words) -> np.ndarray:
    """The unit vector of every document: int64 (D, DIMENSIONS), all 0 without words."""
    vectors = np.zeros((len(words.offsets_D1) - 1, DIMENSIONS), np.int64)
    _bags(words.hashes_W, words.offsets_D1, _function_words(), vectors)
    lengths = np.sqrt((vectors**2).sum(axis=1))
    return np.rint(vectors * (UNIT / np.maximum(lengths, 1.0))[:, None]).astype(np.int64)


@functools.cache
def _function_words() -> np.ndarray:
    """The hashes of the function words of all languages, sorted: that of a raw document is not known."""
    _, hashes, _ = stop_word_hashes()
    return np.unique(hashes)


@compiled(inline="always")
def _uniform(hashed):
    """A hash with every bit mixed (the finaliser of SplitMix64)."""
    hashed = (hashed ^ (hashed >> _30)) * _FIRST
    hashed = (hashed ^ (hashed >> _27)) * _SECOND
    return hashed ^ (hashed >> _31)


@compiled()
def _ngrams(hashes, offsets, documents, n, limit, into):
    found = 0
    for d in documents:
        for w in range(offsets[d], offsets[d + 1] - n + 1):
            hashed = START
            for i in range(n):
                hashed = extended(hashed, hashes[w + i])
            hashed = _uniform(hashed)
            if hashed <= limit:
                into[found] = hashed
                found += 1
    return found


@compiled()
def _bags(hashes, offsets, left_out, vectors):
    longest = 0
    for d in range(len(vectors)):
        longest = max(longest, offsets[d + 1] - offsets[d])
    table = hash_table(longest + 1)
    mask = len(table.keys) - 1
    for d in range(len(vectors)):
        for w in range(offsets[d], offsets[d + 1]):
            if seen_before(hashes[w], table, d + 1, mask):
                continue
            place = np.searchsorted(left_out, hashes[w])
            if place < len(left_out) and left_out[place] == hashes[w]:
                continue
            hashed = _uniform(hashes[w])
            vectors[d, hashed & _BUCKET] += 1 if hashed >> _63 else -1
