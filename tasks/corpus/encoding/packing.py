"""Documents laid into sequences of one length so that few are cut and little is padded.

Ding et al., Fewer Truncations Improve Language Modeling, ICML 2024, section 3: a document longer than a
sequence is cut into whole sequences and a rest; rests and short documents go, longest first, each into the
sequence with the least room that still holds it (best-fit decreasing).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.compiled import compiled


@dataclass(frozen=True)
class Packing:
    """Pieces of documents (P of them) by sequence and position; every token of a document is in one.

    Attributes:
        sequences: how many there are.
        sequence_P: the sequence that a piece lies in, ascending (int64).
        position_P: where in the sequence it begins (int64).
        document_P: the document that it is of (int64).
        first_P: its first token, counted within the document (int64).
        tokens_P: how many tokens it has, at least one (int64).
    """

    sequences: int
    sequence_P: np.ndarray
    position_P: np.ndarray
    document_P: np.ndarray
    first_P: np.ndarray
    tokens_P: np.ndarray


def pack(lengths_D: np.ndarray, sequence_tokens: int) -> Packing:
    """Pack documents of ``lengths_D`` tokens into sequences of ``sequence_tokens``.

    The whole sequences that long documents fill come first, in the documents' order. Equal lengths are placed
    in the documents' order; of several sequences with equal room the one that was filled last is taken. Takes
    O(D log D + D log S) time for D documents and sequences of S tokens, and memory for D and S.

    Raises:
        ValueError: a length is negative, or a sequence has no token.
    """
    lengths_D = np.ascontiguousarray(lengths_D, np.int64)
    if sequence_tokens < 1 or (lengths_D < 0).any():
        raise ValueError(f"lengths must be 0 or more, and a sequence 1 or more, not {sequence_tokens}")
    whole_D, rests_D = np.divmod(lengths_D, sequence_tokens)
    whole = int(whole_D.sum())
    rests = np.flatnonzero(rests_D)
    rests = rests[np.argsort(-rests_D[rests], kind="stable")]
    bins_R, positions_R, bins = _best_fit(rests_D[rests], sequence_tokens)
    cut = np.repeat(np.arange(len(lengths_D)), whole_D)
    within = np.arange(whole) - np.repeat(np.cumsum(whole_D) - whole_D, whole_D)
    order = np.argsort(bins_R, kind="stable")
    rests = rests[order]
    return Packing(
        sequences=whole + int(bins),
        sequence_P=np.concatenate([np.arange(whole), whole + bins_R[order]]),
        position_P=np.concatenate([np.zeros(whole, np.int64), positions_R[order]]),
        document_P=np.concatenate([cut, rests]),
        first_P=np.concatenate([within * sequence_tokens, whole_D[rests] * sequence_tokens]),
        tokens_P=np.concatenate([np.full(whole, sequence_tokens, np.int64), rests_D[rests]]),
    )


@compiled()
def _best_fit(lengths_R, size):
    """The bin of every item and its position there, and the number of bins; the items come longest first.

    ``occupied`` is a complete binary tree over the rooms 0 … size: a node tells whether a bin below it has
    such room. The bins of one room are a stack: ``top`` of each room, ``below`` of each bin.
    """
    leaves = 1
    while leaves < size + 1:
        leaves *= 2
    occupied = np.zeros(2 * leaves, np.bool_)
    top = np.full(size + 1, -1, np.int64)
    below = np.empty(len(lengths_R), np.int64)
    bins_R = np.empty(len(lengths_R), np.int64)
    positions_R = np.empty(len(lengths_R), np.int64)
    bins = 0
    for r in range(len(lengths_R)):
        length = lengths_R[r]
        room = _least_room(occupied, leaves, length)
        if room < 0:
            room, chosen = size, bins
            bins += 1
        else:
            chosen = top[room]
            top[room] = below[chosen]
            node = leaves + room
            if top[room] < 0:
                occupied[node] = False
                while node > 1 and not occupied[node ^ 1]:
                    node //= 2
                    occupied[node] = False
        bins_R[r] = chosen
        positions_R[r] = size - room
        left = room - length
        if left:
            below[chosen] = top[left]
            top[left] = chosen
            node = leaves + left
            while node and not occupied[node]:
                occupied[node] = True
                node //= 2
    return bins_R, positions_R, bins


@compiled()
def _least_room(occupied, leaves, length):
    """The least room that is at least ``length`` and that a bin has, or -1."""
    node = leaves + length
    if occupied[node]:
        return length
    while node > 1:
        if node % 2 == 0 and occupied[node + 1]:
            node += 1
            while node < leaves:
                node = 2 * node if occupied[2 * node] else 2 * node + 1
            return node - leaves
        node //= 2
    return -1
