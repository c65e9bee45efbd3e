"""Documents as TF-IDF vectors: alike by cosine, and found without comparing all pairs.

Weights are scikit-learn's defaults: tf is the count of a word in the document, idf = ln((1 + n) / (1 + df)) +
1, and each vector has the norm 1. Candidates are found exactly, by prefix filtering (Bayardo, Ma and Srikant,
Scaling Up All Pairs Similarity Search, WWW 2007), with the bound by the norm of what is left out (Anastasiu
and Karypis, L2AP: Fast Cosine Similarity Search With Prefix L-2 Norm Bounds, ICDE 2014).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.compiled import compiled

if TYPE_CHECKING:
    from tasks.corpus.scoring.segments import Words

FREQUENCY_SLOTS = 2**22
"""Of the table of frequencies (16 MiB). Words that fall into one slot count as one word there."""

_ROUNDING = 1e-9
"""By so much a computed cosine may be off the true one: documents within it of the threshold share a key."""


@dataclass(frozen=True)
class SparseVectors:
    """The vectors of D documents, back to back; that of a document without words is empty."""

    terms_T: np.ndarray
    """uint64: hashes of the different words of each document, ascending"""
    weights_T: np.ndarray
    """float64; the squares of a document's are 1 together"""
    offsets_D1: np.ndarray
    """int64: those of document d are from ``offsets_D1[d]`` to ``offsets_D1[d + 1]``"""


def document_frequencies(words: Words, slots: int = FREQUENCY_SLOTS) -> np.ndarray:
    """In how many of these documents each word is: int32 of shape (slots,), a power of two.

    Tables of several batches are added. Words of one slot share its sum: their idf is a little too small, and
    the same in every document.

    Raises:
        ValueError: ``slots`` is no power of two.
    """
    if slots < 1 or slots & (slots - 1):
        raise ValueError(f"slots is {slots}, but must be a power of two")
    terms_T, _, _ = _counted(words.hashes_W, words.offsets_D1)
    return np.bincount(_slots_of(terms_T, slots), minlength=slots).astype(np.int32)


def vectors(words: Words, frequencies: np.ndarray, documents: int) -> SparseVectors:
    """The vectors of these documents, by the frequencies among all ``documents`` (n of the idf).

    A document's vector depends on its words and the frequencies alone, bit for bit.
    """
    terms_T, counts_T, offsets_D1 = _counted(words.hashes_W, words.offsets_D1)
    rarity_T = frequencies[_slots_of(terms_T, len(frequencies))].astype(np.float64)
    weights_T = counts_T * (np.log((1 + documents) / (1 + rarity_T)) + 1)
    _normalise(weights_T, offsets_D1)
    return SparseVectors(terms_T, weights_T, offsets_D1)


def prefix_keys(
    found: SparseVectors, frequencies: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """The terms by which documents are candidates: keys_K (uint64) and offsets_D1 (int64).

    All terms stand in one order: the rarest first, of equals the smaller hash. A document's keys are its
    first terms, up to where the norm of those behind them falls below ``threshold``. Two documents x and y
    with a cosine of ``threshold`` or more share a key. For assume that they share none, and let the last key
    of x stand no later in the order than that of y. A term that both have and that is a key of x stands no
    later than the last key of y either, so it is a key of y too, against the assumption. All terms that both
    have are thus behind the keys of x, and the cosine is a sum over these: by Cauchy and Schwarz at most the
    norm of x there times the norm of y, which is less than ``threshold`` times 1.

    Raises:
        ValueError: ``threshold`` is not above 0 and at most 1.
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}, but must be above 0 and at most 1")
    documents = len(found.offsets_D1) - 1
    document_T = np.repeat(np.arange(documents), np.diff(found.offsets_D1))
    rarity_T = frequencies[_slots_of(found.terms_T, len(frequencies))]
    order_T = np.lexsort((found.terms_T, rarity_T, document_T))
    taken_D = _prefix_lengths(found.weights_T[order_T], found.offsets_D1, threshold - _ROUNDING)
    place_T = np.arange(len(order_T)) - found.offsets_D1[document_T]
    keys_K = found.terms_T[order_T[place_T < taken_D[document_T]]]
    return keys_K, np.concatenate([[0], np.cumsum(taken_D)])


def cosines(left: SparseVectors, right: SparseVectors) -> np.ndarray:
    """The cosine of every pair of documents, float64 of shape (P,).

    Summed in the order of the hashes, so that neither side nor batch shows; 0 for a document without words.
    """
    return _cosines(
        left.terms_T, left.weights_T, left.offsets_D1, right.terms_T, right.weights_T, right.offsets_D1
    )


def _slots_of(terms_T: np.ndarray, slots: int) -> np.ndarray:
    return ((terms_T ^ (terms_T >> np.uint64(32))) & np.uint64(slots - 1)).astype(np.int64)


@compiled()
def _counted(hashes_W, offsets_D1):
    """The different words of each document, ascending, how often each is there, and where they begin."""
    documents = len(offsets_D1) - 1
    terms_T, counts_T = np.empty(len(hashes_W), np.uint64), np.empty(len(hashes_W), np.int64)
    bounds = np.zeros(documents + 1, np.int64)
    total = 0
    for d in range(documents):
        ascending = np.sort(hashes_W[offsets_D1[d] : offsets_D1[d + 1]])
        for i in range(len(ascending)):
            if i > 0 and ascending[i] == ascending[i - 1]:
                counts_T[total - 1] += 1
            else:
                terms_T[total], counts_T[total] = ascending[i], 1
                total += 1
        bounds[d + 1] = total
    return terms_T[:total].copy(), counts_T[:total].copy(), bounds


@compiled()
def _normalise(weights_T, offsets_D1):
    for d in range(len(offsets_D1) - 1):
        total = 0.0
        for i in range(offsets_D1[d], offsets_D1[d + 1]):
            total += weights_T[i] * weights_T[i]
        norm = math.sqrt(total)
        for i in range(offsets_D1[d], offsets_D1[d + 1]):
            weights_T[i] /= norm


@compiled()
def _prefix_lengths(weights_T, offsets_D1, threshold):
    """How many of each document's terms, in the order given, come before the norm falls below the
    threshold."""
    lengths_D = np.zeros(len(offsets_D1) - 1, np.int64)
    for d in range(len(lengths_D)):
        rest = 0.0
        stop = offsets_D1[d + 1]
        # From the end: what is small is summed first, and a rest of nothing is exactly 0.
        while stop > offsets_D1[d]:
            rest += weights_T[stop - 1] * weights_T[stop - 1]
            if math.sqrt(rest) >= threshold:
                break
            stop -= 1
        lengths_D[d] = stop - offsets_D1[d]
    return lengths_D


@compiled()
def _cosines(left_T, left_weights_T, left_D1, right_T, right_weights_T, right_D1):
    pairs = len(left_D1) - 1
    values_P = np.zeros(pairs, np.float64)
    for p in range(pairs):
        i, j = left_D1[p], right_D1[p]
        total = 0.0
        while i < left_D1[p + 1] and j < right_D1[p + 1]:
            if left_T[i] == right_T[j]:
                total += left_weights_T[i] * right_weights_T[j]
                i += 1
                j += 1
            elif left_T[i] < right_T[j]:
                i += 1
            else:
                j += 1
        values_P[p] = min(total, 1.0)
    return values_P
