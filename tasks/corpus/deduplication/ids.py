"""Document ids as numbers: 16 bytes in Spark, two uint64 in NumPy, in the same order as their hex."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

BYTES = 16


def numbers_of(ids: pa.BinaryArray) -> np.ndarray:
    """Ids of 16 bytes as uint64 of shape (N, 2)."""
    _, offsets, data = ids.buffers()
    if len(ids) == 0 or offsets is None or data is None:
        return np.empty((0, 2), np.uint64)
    start = int(np.frombuffer(offsets, np.int32)[ids.offset])
    held = np.frombuffer(data, np.uint8)[start : start + BYTES * len(ids)]
    return held.view(">u8").astype(np.uint64).reshape(-1, 2)


def ids_of(numbers_N2: np.ndarray) -> pa.BinaryArray:
    """The reverse of `numbers_of`."""
    import pyarrow as pa

    offsets = np.arange(len(numbers_N2) + 1, dtype=np.int32) * BYTES
    data = np.ascontiguousarray(numbers_N2.astype(">u8"))
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(numbers_N2), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def distinct_ids(numbers_N2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ids ascending, of shape (U, 2), and the place of each given one among them."""
    order = np.lexsort((numbers_N2[:, 1], numbers_N2[:, 0]))
    ascending_N2 = numbers_N2[order]
    new_N = np.ones(len(order), bool)
    new_N[1:] = (ascending_N2[1:] != ascending_N2[:-1]).any(axis=1)
    places = np.empty(len(order), np.int64)
    places[order] = np.cumsum(new_N) - 1
    return ascending_N2[new_N], places


def binary_ids(names: pa.StringArray) -> pa.BinaryArray:
    """Ids of 32 hexadecimal characters as 16 bytes."""
    import pyarrow as pa

    data = bytes.fromhex("".join(names.to_pylist()))
    offsets = np.arange(len(names) + 1, dtype=np.int32) * BYTES
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(names), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
