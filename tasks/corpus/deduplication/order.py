"""Which of several duplicates stays."""

from __future__ import annotations

import numpy as np


def preference(documents_N: np.ndarray, earlier_N: np.ndarray) -> np.ndarray:
    """The place of each document when the one that is to stay comes first, int64 of shape (N,).

    Those of an earlier index come before all others, then the longest, of equals the one with the smallest
    id; ``documents_N`` is of dtype `tasks.corpus.deduplication.segments.DOCUMENT`.
    """
    ids_N2 = documents_N["id"]
    order = np.lexsort((ids_N2[:, 1], ids_N2[:, 0], -documents_N["length"], ~earlier_N))
    places_N = np.empty(len(order), np.int64)
    places_N[order] = np.arange(len(order))
    return places_N
