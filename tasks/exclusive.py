"""One process at a time for what is written to a path."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
"""What file systems that have no locks say."""


@contextmanager
def exclusive(lock: Path) -> Iterator[bool]:
    """Hold the file ``lock`` within the block; yields False if another process does.

    The file goes at the end. The lock is the operating system's and ends with its process: one that a killed
    process has left is free. Where there are no locks nothing is locked.
    """
    descriptor = _taken(lock)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            lock.unlink(missing_ok=True)
            os.close(descriptor)


def _taken(lock: Path) -> int | None:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                os.close(descriptor)
                raise
        if _is_still(lock, descriptor):
            return descriptor
        os.close(descriptor)  # its holder has just ended, and removed it


def _is_still(lock: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(lock.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
