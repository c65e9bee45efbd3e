from __future__ import annotations

import errno
import io
from pathlib import Path

import numpy as np
import pytest

from tasks.array_files import save_array

ARRAYS = {
    "numbers": np.arange(5),
    "none": np.empty((0, 2), np.int64),
    "one": np.array(7.5),
    "rows": np.array([(1, 2.5, (3, 4))], [("a", np.int64), ("b", np.float64), ("c", np.uint64, 2)]),
    "a column of a table": np.arange(12, dtype=np.uint32).reshape(3, 4)[:, 1],
    "by columns": np.asfortranarray(np.arange(12).reshape(3, 4)),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_numpy_reads_an_array_as_it_was(array: np.ndarray) -> None:
    file = io.BytesIO()
    save_array(file, array)
    file.seek(0)
    found = np.load(file)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("size", [1, 1_000_000], ids=["less than a buffer", "more"])
def test_a_full_disk_is_told_with_its_number(size: int) -> None:
    def written() -> None:
        with Path("/dev/full").open("wb") as file:
            save_array(file, np.zeros(size))

    with pytest.raises(OSError, match="No space left") as told:
        written()
    assert told.value.errno == errno.ENOSPC
