"""A table from 64-bit keys to rows, with open addressing, in plain NumPy arrays that a file can hold.

A row number names its key for good, so that a larger n-gram's key can be made of the row of its context.
Keys are inserted in ascending order: the same keys give the same table, bit for bit.
"""

from __future__ import annotations

import numpy as np

from tasks.compiled import compiled

ROW = np.dtype([("key", "<u8"), ("log_probability", "<f4"), ("log_backoff", "<f4")])
"""One n-gram; key 0 marks an empty row."""


def build_table(keys_K: np.ndarray, extra_rows: int = 0) -> np.ndarray:
    """Rows that hold distinct ascending keys other than 0, half to a quarter of them empty or more.

    ``extra_rows`` follow the table proper; no key is ever found there.
    """
    capacity = table_capacity(len(keys_K))
    rows_S = np.zeros(capacity + extra_rows, dtype=ROW)
    _insert(rows_S, capacity - 1, keys_K)
    return rows_S


def table_capacity(keys: int) -> int:
    """The power of two that leaves at least a third of the rows empty."""
    return 1 << max(3, (keys + keys // 2).bit_length())


@compiled()
def mix(key: np.uint64) -> np.uint64:
    """A bijection of 64 bits in which every bit depends on every other (Steele et al. 2014, SplitMix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@compiled()
def find_row(rows_S: np.ndarray, mask: int, key: np.uint64) -> np.int64:
    """The row of a key, or −1, as for key 0. Ends on a damaged table without an empty row, too."""
    slot = np.int64(mix(key) & np.uint64(mask))
    for _ in range(mask + 1):
        found = rows_S[slot].key
        if found == 0:
            return np.int64(-1)
        if found == key:
            return slot
        slot = (slot + 1) & mask
    return np.int64(-1)


@compiled()
def find_rows(rows_S: np.ndarray, mask: int, keys_K: np.ndarray, missing: int) -> np.ndarray:
    """The row of every key, or ``missing``."""
    found_K = np.empty(len(keys_K), dtype=np.int32)
    for index in range(len(keys_K)):
        row = find_row(rows_S, mask, keys_K[index])
        found_K[index] = row if row >= 0 else missing
    return found_K


@compiled()
def _insert(rows_S: np.ndarray, mask: int, keys_K: np.ndarray) -> None:
    for key in keys_K:
        slot = np.int64(mix(key) & np.uint64(mask))
        while rows_S[slot].key != 0:
            slot = (slot + 1) & mask
        rows_S[slot].key = key
