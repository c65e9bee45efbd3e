"""Shingles, MinHash signatures and exact Jaccard similarity of documents.

Broder, On the Resemblance and Containment of Documents, 1997. Signatures are datasketch's own, so that a
user can load them there.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import numpy as np

from tasks.corpus.signals import UNSEGMENTED

SCHEME = "affine32"
"""datasketch's name of the permutations: h -> a h + b modulo 2^32."""

_WORD = re.compile(r"\w+")
_BATCH = 8192
"""Shingles hashed at once: a book of five million words needs no more memory than a page."""


def shingles(text: str, size: int) -> set[str]:
    """The set of runs of ``size`` words, without case and punctuation.

    In a script without spaces each character counts as a word. A text shorter than ``size`` is one shingle;
    a text without words has none.
    """
    words: list[str] = []
    for word in _WORD.findall(text.casefold()):
        if UNSEGMENTED.search(word):
            words.extend(UNSEGMENTED.sub(lambda found: f" {found[0]} ", word).split())
        else:
            words.append(word)
    if not words:
        return set()
    if len(words) <= size:
        return {" ".join(words)}
    return {" ".join(words[i : i + size]) for i in range(len(words) - size + 1)}


def signature(items: set[str], permutations: int, seed: int) -> np.ndarray:
    """The MinHash signature (``permutations`` of uint32) of a set of shingles, as datasketch computes it."""
    from datasketch import MinHash

    sketch = MinHash(permutations, seed, scheme=SCHEME, permutations=_permutations(permutations, seed))
    for batch in _batched(items):
        sketch.update_batch(batch)
    return np.array(sketch.hashvalues, dtype=np.uint32)


def bands(values: np.ndarray, count: int, rows: int) -> list[bytes]:
    """The signature cut into ``count`` bands of ``rows``; documents that share one are candidates."""
    return [values[band * rows : (band + 1) * rows].tobytes() for band in range(count)]


def jaccard(left: set[str], right: set[str]) -> float:
    """|A ∩ B| / |A ∪ B|; two empty sets are not alike."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


@functools.lru_cache(maxsize=4)
def _permutations(count: int, seed: int) -> np.ndarray:
    from datasketch import MinHash

    return np.array(MinHash(count, seed, scheme=SCHEME).permutations)


def _batched(items: set[str]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    for item in items:
        batch.append(item.encode("utf-8", "surrogatepass"))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
