"""Near-duplicates by shingles: candidates share a band of their MinHash signatures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.method import Measured
from tasks.corpus.deduplication.minhash import band_keys, signatures
from tasks.corpus.deduplication.segments import Features
from tasks.corpus.deduplication.shingles import shingle
from tasks.corpus.deduplication.similarity import Measure, similarities
from tasks.corpus.scoring.segments import segment_words

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class MinHashMethod:
    """The features of a document are its shingles; those that it repeats are there as often."""

    shingle_words: int
    bands: int
    rows: int
    seed: int
    measured_by: Measure
    threshold: float
    name: str = "minhash"
    rule: str = "near_duplicate"

    def measure(self, texts: pyarrow.StringArray) -> Measured:
        """Shingles, and a key for each band of a text that has words."""
        found = shingle(segment_words(texts, places=False), self.shingle_words)
        made_DP = signatures(found, self.bands * self.rows, self.seed)
        keys_DB = band_keys(made_DP, self.bands)
        has_words_D = np.diff(found.offsets_D1) > 0
        key_offsets_D1 = np.concatenate([[0], np.cumsum(has_words_D * self.bands)])
        return Measured(
            found.hashes_S, found.offsets_D1, keys_DB[has_words_D].reshape(-1), key_offsets_D1, made_DP
        )

    def similarities(self, documents: Features, left_P: np.ndarray, right_P: np.ndarray) -> np.ndarray:
        """Jaccard's similarity or containment of the sets of shingles."""
        return similarities(documents, left_P, right_P, self.measured_by)
