"""Runs of words as hashes: what documents are compared by.

Broder, On the Resemblance and Containment of Documents, 1997. Words are those of every other signal (see
tasks/corpus/scoring/segments.py): lower case, without punctuation, each character of a script without spaces
a word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.scoring.hashing import appended, dropped, mixed, power_of

if TYPE_CHECKING:
    from tasks.corpus.scoring.segments import Words


@dataclass(frozen=True)
class Shingles:
    """The shingles of D documents, back to back."""

    hashes_S: np.ndarray
    """uint64; one that a document repeats is there as often"""
    offsets_D1: np.ndarray
    """int64: those of document d are from ``offsets_D1[d]`` to ``offsets_D1[d + 1]``"""


def shingle(words: Words, size: int) -> Shingles:
    """The runs of ``size`` words of every text, in their order.

    A text of fewer words is one shingle; a text without words has none.
    """
    return Shingles(*_shingled(words.hashes_W, words.offsets_D1, size))


@compiled()
def shingle_hashes(hashes_W, begin, end, size, into):
    """Put the hash of every run of ``size`` words of a document into ``into``; returns their number."""
    words = end - begin
    if words == 0:
        return 0
    run = min(size, words)
    power = power_of(run - 1)
    polynomial = np.uint64(0)
    for w in range(begin, begin + run):
        polynomial = appended(polynomial, hashes_W[w])
    into[0] = mixed(polynomial)
    for i in range(1, words - run + 1):
        left = dropped(polynomial, hashes_W[begin + i - 1], power)
        polynomial = appended(left, hashes_W[begin + i + run - 1])
        into[i] = mixed(polynomial)
    return words - run + 1


@compiled()
def _shingled(hashes_W, offsets_D1, size):
    documents = len(offsets_D1) - 1
    out = np.empty(len(hashes_W), np.uint64)
    bounds = np.zeros(documents + 1, np.int64)
    total = 0
    for d in range(documents):
        total += shingle_hashes(hashes_W, offsets_D1[d], offsets_D1[d + 1], size, out[total:])
        bounds[d + 1] = total
    return out[:total].copy(), bounds
