"""Shingles, MinHash signatures and exact Jaccard similarity of documents.

Broder, On the Resemblance and Containment of Documents, 1997. Signatures are those of datasketch, so that a
user can load them there under `SCHEME`.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from hashlib import sha1

import numpy as np

from tasks.corpus.scoring.characters import UNSEGMENTED_RANGES

SCHEME = "affine32"
"""datasketch's name of the permutations: h -> a h + b modulo 2^32."""

_WORD = re.compile(r"\w+")
_UNSEGMENTED = re.compile(f"[{UNSEGMENTED_RANGES}]")
_BATCH = 1024
"""Shingles hashed at once: what all permutations make of them fits the processor's cache."""


def shingles(text: str, size: int) -> set[str]:
    """The set of runs of ``size`` words, without case and punctuation.

    In a script without spaces each character counts as a word. A text shorter than ``size`` is one shingle;
    a text without words has none.
    """
    words: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if _UNSEGMENTED.search(word):
            words.extend(_UNSEGMENTED.sub(lambda found: f" {found[0]} ", word).split())
        else:
            words.append(word)
    if not words:
        return set()
    if len(words) <= size:
        return {" ".join(words)}
    return {" ".join(words[i : i + size]) for i in range(len(words) - size + 1)}


def signature(items: set[str], permutations: int, seed: int) -> np.ndarray:
    """The MinHash signature (``permutations`` of uint32) of a set of shingles, datasketch's bit for bit.

    Each shingle's SHA-1, cut to 32 bits and mixed by MurmurHash3's finalizer, goes through every permutation
    h -> a h + b modulo 2^32; of each permutation the smallest value is kept.
    """
    a_P1, b_P1 = _permutations(permutations, seed)
    smallest_P = np.full(permutations, 2**32 - 1, dtype=np.uint32)
    for batch in _batched(items):
        digests = b"".join([sha1(item.encode("utf-8", "surrogatepass")).digest()[:4] for item in batch])
        hashes_N = _mixed(np.frombuffer(digests, dtype="<u4").astype(np.uint32))
        np.minimum(smallest_P, (a_P1 * hashes_N + b_P1).min(axis=1), out=smallest_P)
    return smallest_P


def bands(values: np.ndarray, count: int, rows: int) -> list[bytes]:
    """The signature cut into ``count`` bands of ``rows``; documents that share one are candidates."""
    return [values[band * rows : (band + 1) * rows].tobytes() for band in range(count)]


def jaccard(left: set[str], right: set[str]) -> float:
    """|A ∩ B| / |A ∪ B|; two empty sets are not alike."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


@functools.lru_cache(maxsize=4)
def _permutations(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """datasketch's permutations: a odd, so that h -> a h + b is a bijection of 32 bits."""
    random = np.random.RandomState(seed)
    a = random.randint(0, 2**31, count, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = random.randint(0, 2**32, count, dtype=np.uint32)
    return a[:, None], b[:, None]


def _mixed(hashes_N: np.ndarray) -> np.ndarray:
    """The 32-bit finalizer of MurmurHash3 (Appleby, 2011)."""
    hashes_N = (hashes_N ^ (hashes_N >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashes_N = (hashes_N ^ (hashes_N >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return hashes_N ^ (hashes_N >> np.uint32(16))


def _batched(items: set[str]) -> Iterator[list[str]]:
    remaining = iter(items)
    while batch := list(itertools.islice(remaining, _BATCH)):
        yield batch
