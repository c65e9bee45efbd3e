"""MinHash signatures, equal bit for bit to datasketch's under `shingle_hash` and `SCHEME`.

Broder, On the Resemblance and Containment of Documents, 1997; locality-sensitive hashing by bands: Leskovec,
Rajaraman and Ullman, Mining of Massive Datasets, chapter 3. A user loads them there as
``MinHash(num_perm=…, seed=…, scheme=SCHEME, hashfunc=shingle_hash, hashvalues=…)``.
"""

from __future__ import annotations

import functools

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.deduplication.shingles import Shingles, shingle
from tasks.corpus.scoring.hashing import hash_of
from tasks.corpus.scoring.segments import segment_words

SCHEME = "affine32"
"""datasketch's name of the permutations: h -> a h + b modulo 2^32."""


def signatures(shingles: Shingles, permutations: int, seed: int) -> np.ndarray:
    """The signatures of D documents, uint32 of shape (D, permutations).

    The low 32 bits of each shingle's hash, mixed by MurmurHash3's finalizer, go through every permutation
    h -> a h + b modulo 2^32; of each the smallest value is kept. A document without words has the largest
    value everywhere.
    """
    a_P, b_P = _permutations(permutations, seed)
    return _signatures(shingles.hashes_S, shingles.offsets_D1, a_P, b_P)


def band_keys(signatures_DP: np.ndarray, bands: int) -> np.ndarray:
    """A hash of every band of every signature, uint64 of shape (D, bands).

    Documents that share a key are candidates; the number of the band is part of the hash.
    """
    return _band_keys(signatures_DP, bands)


def shingle_hash(text: bytes) -> int:
    """The hash of 32 bits of a shingle, its words with spaces between: ``hashfunc`` for datasketch."""
    import pyarrow as pa

    words = segment_words(pa.array([text.decode("utf-8")]), places=False)
    (hashed,) = shingle(words, len(words.hashes_W)).hashes_S
    return int(hashed) & 0xFFFFFFFF


@functools.lru_cache(maxsize=4)
def _permutations(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """datasketch's permutations: a odd, so that h -> a h + b is a bijection of 32 bits."""
    random = np.random.RandomState(seed)
    a_P = random.randint(0, 2**31, count, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b_P = random.randint(0, 2**32, count, dtype=np.uint32)
    return a_P, b_P


@compiled()
def _signatures(hashes_S, offsets_D1, a_P, b_P):
    documents, permutations = len(offsets_D1) - 1, len(a_P)
    signatures_DP = np.full((documents, permutations), 0xFFFFFFFF, np.uint32)
    for d in range(documents):
        smallest_P = signatures_DP[d]
        for i in range(offsets_D1[d], offsets_D1[d + 1]):
            mixed = _mixed(np.uint32(hashes_S[i]))
            for p in range(permutations):
                smallest_P[p] = min(smallest_P[p], np.uint32(a_P[p] * mixed + b_P[p]))
    return signatures_DP


@compiled(inline="always")
def _mixed(hashed):
    """The 32-bit finalizer of MurmurHash3 (Appleby, 2011)."""
    hashed = np.uint32((hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B))
    hashed = np.uint32((hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35))
    return np.uint32(hashed ^ (hashed >> np.uint32(16)))


@compiled()
def _band_keys(signatures_DP, bands):
    documents, permutations = signatures_DP.shape
    rows = permutations // bands
    keys_DB = np.empty((documents, bands), np.uint64)
    for d in range(documents):
        for band in range(bands):
            # The hash of the rows differs between equal bands at different places by their number.
            keys_DB[d, band] = hash_of(signatures_DP[d], band * rows, (band + 1) * rows) ^ np.uint64(
                0x9E3779B97F4A7C15
            ) * np.uint64(band + 1)
    return keys_DB
