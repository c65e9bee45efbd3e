"""A uniform sample without a shuffle: the ids whose hashes are smallest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tasks.records import order_key


class Smallest:
    """The ``size`` smallest of all ranks ever added, with their ids; what was added twice is in it once.

    It depends on the set of ids alone, neither on their order nor on how they were divided (a bottom-k
    sketch: Cohen and Kaplan, Summarizing data using bottom-k sketches, PODC 2007).
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._ranks_K = np.empty(0, np.uint64)
        self._ids_K = np.empty(0, "S32")

    def add(self, ranks_N: np.ndarray, ids_N: np.ndarray) -> None:
        """Take in ids (as 32 bytes) with their ranks."""
        if self._size == 0:
            return
        if len(self._ranks_K) == self._size:
            low_N = ranks_N <= self._ranks_K[-1]
            if not low_N.any():
                return
            ranks_N, ids_N = ranks_N[low_N], ids_N[low_N]
        ids_M = np.concatenate([self._ids_K, ids_N])
        ranks_M = np.concatenate([self._ranks_K, ranks_N])
        ids_M, first = np.unique(ids_M, return_index=True)
        ranks_M = ranks_M[first]
        order_K = np.lexsort((ids_M, ranks_M))[: self._size]
        self._ranks_K, self._ids_K = ranks_M[order_K], ids_M[order_K]

    def items(self) -> list[tuple[int, str]]:
        """Ranks and ids, smallest first."""
        return [
            (int(rank), name.decode()) for rank, name in zip(self._ranks_K, self._ids_K.tolist(), strict=True)
        ]


def id_bytes(ids: pa.Array) -> np.ndarray:
    """Document ids as an array of 32 bytes each.

    Raises:
        pyarrow.ArrowInvalid: an id has not 32 digits.
    """
    fixed = ids.cast(pa.binary(32))
    buffer = fixed.buffers()[1]
    if not len(fixed) or buffer is None:
        return np.empty(0, "S32")
    return np.frombuffer(buffer, "S32", count=len(fixed), offset=32 * fixed.offset)


def ranks(ids_N: np.ndarray, seed: int, rule: str) -> np.ndarray:
    """A 64-bit hash of (seed, rule, id) for each id.

    An id is a hash already; its first 64 bits, mixed with a key of seed and rule by the finalizer of
    SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), order the documents anew for each rule.
    """
    key = np.uint64(int(order_key("review", seed, rule)[:16], 16))
    digits_ND = np.ascontiguousarray(ids_N).view(np.uint8).reshape(-1, 32)[:, :16]
    nibbles_ND = _NIBBLES[digits_ND]
    packed_ND = (nibbles_ND[:, 0::2] << 4) | nibbles_ND[:, 1::2]
    mixed_N = np.ascontiguousarray(packed_ND).view(">u8").ravel().astype(np.uint64) ^ key
    mixed_N = (mixed_N ^ (mixed_N >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed_N = (mixed_N ^ (mixed_N >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed_N ^ (mixed_N >> np.uint64(31))


_NIBBLES = np.zeros(256, np.uint8)
_NIBBLES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
