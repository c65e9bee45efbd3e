"""Vectors that point the same way, found by random hyperplanes.

The signs of two vectors' projections on a random direction agree with the probability 1 - angle / π
(Charikar, Similarity Estimation Techniques from Rounding Algorithms, STOC 2002). SemDeDup (Abbas et al. 2023)
compares within clusters of k-means instead: those depend on all documents, these keys on the document alone,
so that new documents change none, and how many pairs are missed can be worked out.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.scoring.hashing import START, extended


def hyperplane_keys(embeddings_DE: np.ndarray, bands: int, bits: int, seed: int) -> np.ndarray:
    """Keys of the vectors, uint64 of shape (D, bands): each of the signs on ``bits`` hyperplanes.

    Vectors that share a key are candidates; the number of the band is part of it. Projections are summed in
    a fixed order: the keys of a vector do not depend on those beside it. Every vector has keys, one of zeros
    too: leave those out, or they are one large bucket.

    Raises:
        ValueError: ``bands`` below 1, or ``bits`` not from 1 to 64.
    """
    _check(bands, bits)
    planes_HE = _hyperplanes(bands * bits, embeddings_DE.shape[1], seed)
    return _keys(np.ascontiguousarray(embeddings_DE), planes_HE, bands, bits)


def expected_recall(threshold: float, bands: int, bits: int) -> float:
    """The probability that two vectors of a cosine of ``threshold`` share a key: 1 - (1 - p^bits)^bands.

    Of vectors that are more alike more are found. p = 1 - arccos(threshold) / π.

    Raises:
        ValueError: ``bands`` below 1, ``bits`` not from 1 to 64, or ``threshold`` not from -1 to 1.
    """
    _check(bands, bits)
    if not -1 <= threshold <= 1:
        raise ValueError(f"threshold is {threshold}, but a cosine is from -1 to 1")
    agreement = 1 - math.acos(threshold) / math.pi
    return 1 - (1 - agreement**bits) ** bands


def cosines(left_PE: np.ndarray, right_PE: np.ndarray) -> np.ndarray:
    """The cosine of every pair of vectors of the norm 1 (or 0, which is like no other): float64 (P,)."""
    return _cosines(np.ascontiguousarray(left_PE), np.ascontiguousarray(right_PE))


def _check(bands: int, bits: int) -> None:
    if bands < 1:
        raise ValueError(f"bands is {bands}, but must be at least 1")
    if not 1 <= bits <= 64:
        raise ValueError(f"bits is {bits}, but must be from 1 to 64")


@functools.lru_cache(maxsize=4)
def _hyperplanes(count: int, width: int, seed: int) -> np.ndarray:
    """Normal vectors in directions that are equally likely, float64 of shape (count, width).

    RandomState, unlike NumPy's newer generators, gives the same numbers in every version.
    """
    return np.random.RandomState(seed).standard_normal((count, width))


@compiled()
def _keys(embeddings_DE, planes_HE, bands, bits):
    documents, width = embeddings_DE.shape
    keys_DB = np.empty((documents, bands), np.uint64)
    for d in range(documents):
        for band in range(bands):
            signs = np.uint64(0)
            for bit in range(bits):
                plane = band * bits + bit
                projection = 0.0
                for e in range(width):
                    projection += planes_HE[plane, e] * embeddings_DE[d, e]
                signs = (signs << np.uint64(1)) | np.uint64(projection >= 0)
            keys_DB[d, band] = extended(extended(START, np.uint64(band)), signs)
    return keys_DB


@compiled()
def _cosines(left_PE, right_PE):
    pairs, width = left_PE.shape
    values_P = np.empty(pairs, np.float64)
    for p in range(pairs):
        total = 0.0
        for e in range(width):
            total += np.float64(left_PE[p, e]) * np.float64(right_PE[p, e])
        values_P[p] = max(-1.0, min(1.0, total))
    return values_P
