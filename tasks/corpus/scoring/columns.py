"""Signals as a matrix, and as the column of maps that a layer has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa


def signals_column(names: Sequence[str], signals_DS: np.ndarray) -> pa.MapArray:
    """A map for each document; a signal that is NaN was not measured and is left out."""
    import pyarrow as pa

    measured_DS = ~np.isnan(signals_DS)
    offsets = np.concatenate([[0], np.cumsum(measured_DS.sum(axis=1))]).astype(np.int32)
    numbers = np.broadcast_to(np.arange(len(names), dtype=np.int32), signals_DS.shape)[measured_DS]
    keys = pa.array(list(names), pa.string()).take(pa.array(numbers))
    return pa.MapArray.from_arrays(pa.array(offsets), keys, pa.array(signals_DS[measured_DS]))


def signals_matrix(column: pa.MapArray) -> tuple[list[str], np.ndarray]:
    """The names of all signals in a column, and their values: float64 (D, S), NaN where one was not
    measured."""
    import pyarrow as pa

    offsets = np.asarray(column.offsets)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(column) else (0, 0)
    keys = column.keys.slice(first, last - first).dictionary_encode()
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    names = keys.dictionary.to_pylist()
    signals_DS = np.full((len(column), len(names)), np.nan)
    document = np.repeat(np.arange(len(column)), np.diff(offsets))
    values = column.items.slice(first, last - first).to_numpy(zero_copy_only=False)
    signals_DS[document, np.asarray(keys.indices)] = values
    return names, signals_DS
