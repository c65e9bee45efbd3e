"""A file below which something may go wrong."""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO

from tasks.corpus.store_errors import reason_of


class WatchedReader(io.RawIOBase):
    """A file that remembers what went wrong below it: readers take a lost connection for a broken file."""

    def __init__(self, opened: BinaryIO) -> None:
        super().__init__()
        self._opened = opened
        self.error: Exception | None = None

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; 0 at the end."""
        try:
            content = self._opened.read(len(buffer))
        except Exception as error:
            self.error = error
            raise OSError(reason_of(error)) from error
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to an offset."""
        return self._opened.seek(offset, whence)

    def tell(self) -> int:
        """The offset."""
        return self._opened.tell()

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def close(self) -> None:
        """Close the file below too."""
        if not self.closed:
            self._opened.close()
        super().close()
