"""A way to find duplicates: what is kept of a document, who is compared with whom, how alike two are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tasks.corpus.deduplication.segments import Features

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Measured:
    """What a method makes of D texts."""

    values: np.ndarray
    """the features of all texts, back to back; of a dtype and shape whose rows are a multiple of 8 bytes"""
    offsets_D1: np.ndarray
    keys_K: np.ndarray
    """uint64: texts that share a key are compared"""
    key_offsets_D1: np.ndarray
    signatures_DP: np.ndarray | None = None
    """what is kept beside them for other programs"""


class Method(Protocol):
    """One is sent to every worker: it is pickled."""

    @property
    def name(self) -> str:
        """Of the folder with its files in an index."""
        ...

    @property
    def rule(self) -> str:
        """What the ledger calls the duplicates that it finds."""
        ...

    @property
    def threshold(self) -> float:
        """The similarity from which two documents are duplicates."""
        ...

    def measure(self, texts: pyarrow.StringArray) -> Measured:
        """Features and keys of texts; each text's are its own, whatever the others are."""
        ...

    def similarities(self, documents: Features, left_P: np.ndarray, right_P: np.ndarray) -> np.ndarray:
        """How alike the two of each pair of places among the documents are, float64 of shape (P,).

        A document without features is like no other.
        """
        ...
