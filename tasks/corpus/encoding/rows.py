"""Packed sequences as rows of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.encoding.packing import Packing

_TOKENS_AT_ONCE = 2**22


def packed_rows(
    packing: Packing, stream_N: np.ndarray, offsets_D: np.ndarray, sequence_tokens: int, pad: int
) -> Iterator[np.ndarray]:
    """The sequences in order, some at a time: rows_RS of the stream's type, filled up with ``pad``.

    ``stream_N`` has the documents' tokens, each document from its place in ``offsets_D`` on.
    """
    at_once = max(1, _TOKENS_AT_ONCE // sequence_tokens)
    begin_P = offsets_D[packing.document_P] + packing.first_P
    for first in range(0, packing.sequences, at_once):
        count = min(at_once, packing.sequences - first)
        rows_RS = np.full((count, sequence_tokens), pad, stream_N.dtype)
        low, high = np.searchsorted(packing.sequence_P, [first, first + count])
        _lay_out(
            rows_RS,
            stream_N,
            packing.sequence_P[low:high] - first,
            packing.position_P[low:high],
            begin_P[low:high],
            packing.tokens_P[low:high],
        )
        yield rows_RS


@compiled()
def _lay_out(rows_RS, stream_N, sequence_P, position_P, begin_P, tokens_P):
    """Copy every piece from the stream of documents to its place."""
    for p in range(len(sequence_P)):
        for t in range(tokens_P[p]):
            rows_RS[sequence_P[p], position_P[p] + t] = stream_N[begin_P[p] + t]
