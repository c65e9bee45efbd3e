"""Ids and content hashes as numbers: 32 hexadecimal characters are two uint64, in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tasks.stage import StageError

if TYPE_CHECKING:
    import pyarrow

CHARACTERS = 32


def numbers_of(names: pyarrow.StringArray) -> np.ndarray:
    """Ids as uint64 of shape (N, 2), the high half first.

    Raises:
        StageError: one is not of 32 hexadecimal characters.
    """
    if not len(names):
        return np.empty((0, 2), np.uint64)
    _, offsets, data = names.buffers()
    bounds_N1 = np.frombuffer(offsets, np.int32)[names.offset : names.offset + len(names) + 1]
    characters = np.frombuffer(data, np.uint8)[bounds_N1[0] : bounds_N1[-1]]
    sizes_N = np.diff(bounds_N1)
    digits = _DIGITS[characters]
    if names.null_count or (sizes_N != CHARACTERS).any() or (digits > 15).any():
        wrong = next(name for name in names.to_pylist() if not _is_id(name))
        raise StageError(f"{wrong!r} is no id or content hash of a document: they have 32 hexadecimal digits")
    octets = digits[0::2] << 4 | digits[1::2]
    return octets.view(">u8").astype(np.uint64).reshape(-1, 2)


def hexadecimal(numbers_N2: np.ndarray) -> pyarrow.StringArray:
    """The reverse of `numbers_of`."""
    import pyarrow as pa

    offsets = np.arange(len(numbers_N2) + 1, dtype=np.int32) * CHARACTERS
    data = np.ascontiguousarray(numbers_N2.astype(">u8")).tobytes().hex().encode()
    return pa.StringArray.from_buffers(len(numbers_N2), pa.py_buffer(offsets), pa.py_buffer(data))


def _is_id(name: str | None) -> bool:
    return name is not None and len(name) == CHARACTERS and all(_DIGITS[ord(c) & 255] < 16 for c in name)


_DIGITS = np.full(256, 255, np.uint8)
for _value, _digit in enumerate("0123456789abcdef"):
    _DIGITS[ord(_digit)] = _value
