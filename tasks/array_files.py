"""Arrays as ``.npy``, written so that a full disk is told as one.

numpy's own writer goes around Python's files: on a full disk it raises an OSError without a number ("200000
requested and 131056 written"), which nobody can tell from a fault of the program.
"""

from __future__ import annotations

from typing import IO

import numpy as np


def save_array(file: IO[bytes], array: np.ndarray) -> None:
    """Write an array as `numpy.save` does.

    Raises:
        OSError: with the operating system's number, ENOSPC where the disk is full.
    """
    held = np.ascontiguousarray(array).reshape(array.shape)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(held))
    file.write(held.reshape(-1).view(np.uint8).data)
