"""The trusted text of one language that a model is trained on: a bounded sample that no order can change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.perplexity.ngram_table import mix
from tasks.corpus.scoring.hashing import extended

if TYPE_CHECKING:
    from tasks.corpus.scoring.segments import Words


@dataclass(frozen=True)
class TrustedWords:
    """Documents of one language, in the order of a hash of their words.

    Of more than ``max_words`` words those are kept that come first in this order, the last document cut. So
    whatever order or partitioning the documents come in, the sample is the same, and two samples of a part
    each make the sample of the whole (`merge_trusted`).
    """

    priorities_D: np.ndarray
    hashes_W: np.ndarray
    offsets_D1: np.ndarray

    @property
    def words(self) -> int:
        """Number of words."""
        return len(self.hashes_W)

    def fold(self, number: int) -> TrustedWords:
        """The documents of one fold (`folds`)."""
        return _first(
            self.priorities_D,
            self.hashes_W,
            self.offsets_D1[:-1],
            np.diff(self.offsets_D1),
            np.flatnonzero(folds(self.priorities_D) == number),
            max(1, self.words),
        )


def trusted_words(
    words: Words, languages: Sequence[str | None], *, max_words: int
) -> dict[str, TrustedWords]:
    """The sample of each language in a batch of documents; one without words or language is left out."""
    documents_by_language: dict[str, list[int]] = {}
    lengths_D = np.diff(words.offsets_D1)
    for document, language in enumerate(languages):
        if language is not None and lengths_D[document]:
            documents_by_language.setdefault(language, []).append(document)
    priorities_D = priorities(words)
    return {
        language: _first(
            priorities_D, words.hashes_W, words.offsets_D1[:-1], lengths_D, np.array(documents), max_words
        )
        for language, documents in sorted(documents_by_language.items())
    }


def merge_trusted(parts: Iterable[TrustedWords], *, max_words: int) -> TrustedWords:
    """The sample of several samples that were made with the same ``max_words``."""
    found = list(parts)
    lengths_D = np.concatenate([np.diff(part.offsets_D1) for part in found])
    starts_D = np.cumsum(lengths_D) - lengths_D
    priorities_D = np.concatenate([part.priorities_D for part in found])
    hashes_W = np.concatenate([part.hashes_W for part in found])
    return _first(priorities_D, hashes_W, starts_D, lengths_D, np.arange(len(lengths_D)), max_words)


def priorities(words: Words) -> np.ndarray:
    """A hash of each document's words in their order, priorities_D."""
    return _hashed(words.hashes_W, words.offsets_D1)


def folds(priorities_D: np.ndarray) -> np.ndarray:
    """Which of two halves each document belongs to, 0 or 1: by its words, so that copies share a half."""
    return (priorities_D & np.uint64(1)).astype(np.int64)


@compiled()
def gather(hashes_W: np.ndarray, starts_D: np.ndarray, offsets_D1: np.ndarray) -> np.ndarray:
    """The words from each start on, as many as the offsets leave room for, back to back."""
    gathered_W = np.empty(offsets_D1[-1], dtype=np.uint64)
    for document in range(len(starts_D)):
        first, last = offsets_D1[document], offsets_D1[document + 1]
        start = starts_D[document]
        gathered_W[first:last] = hashes_W[start : start + last - first]
    return gathered_W


def _first(
    priorities_D: np.ndarray,
    hashes_W: np.ndarray,
    starts_D: np.ndarray,
    lengths_D: np.ndarray,
    chosen: np.ndarray,
    max_words: int,
) -> TrustedWords:
    """The chosen documents in the order of their priority, cut after ``max_words`` words.

    Documents of one priority are equal, but for those that were cut before: the longest goes first, so that
    a copy that was cut does not displace a whole one.
    """
    order = chosen[np.lexsort((-lengths_D[chosen], priorities_D[chosen]))]
    ends_D = np.minimum(np.cumsum(lengths_D[order]), max_words)
    offsets_D1 = np.concatenate([np.zeros(1, dtype=np.int64), ends_D])
    kept = int(np.searchsorted(ends_D, max_words)) + 1  # the document that reaches the bound is the last
    order, offsets_D1 = order[:kept], offsets_D1[: kept + 1]
    return TrustedWords(priorities_D[order], gather(hashes_W, starts_D[order], offsets_D1), offsets_D1)


@compiled()
def _hashed(hashes_W: np.ndarray, offsets_D1: np.ndarray) -> np.ndarray:
    states_D = np.empty(len(offsets_D1) - 1, dtype=np.uint64)
    for document in range(len(states_D)):
        state = np.uint64(offsets_D1[document + 1] - offsets_D1[document])
        for index in range(offsets_D1[document], offsets_D1[document + 1]):
            state = extended(state, hashes_W[index])
        states_D[document] = mix(state)
    return states_D
