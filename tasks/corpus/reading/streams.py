"""Streams of bytes that know where they break."""

from __future__ import annotations

import io
from abc import abstractmethod
from typing import BinaryIO, Protocol

BUFFER_BYTES = 2**18

IN_MEMORY_BYTES = 2**28
"""How much of a compressed or packed file is held in memory where a format needs to seek."""


class SourceBroken(Exception):
    """A stream that cannot be read on.

    ``offset`` is where it broke, in its own bytes; ``position`` is the record that was being read, set by the
    format's reader; ``reported`` is set once it is in the output, since every layer above meets it too.
    """

    def __init__(self, offset: int, reason: str, rule: str = "source_broken") -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason
        self.rule = rule
        self.position = ""
        self.reported = False


class Readable(Protocol):
    """What gives bytes as it has them, so that those before a break are not lost."""

    def read1(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


class Chunked(io.RawIOBase):
    """A stream made of pieces of any length.

    A fault comes out after every byte before it, and again at each further read.
    """

    def __init__(self) -> None:
        self._piece = memoryview(b"")
        self._fault: SourceBroken | None = None

    def readable(self) -> bool:
        """True."""
        return True

    @abstractmethod
    def next_piece(self, wanted: int) -> bytes:
        """The next bytes, some; none at the end."""

    def readinto(self, buffer, /) -> int:
        """Fill the buffer as far as there are bytes."""
        view = memoryview(buffer)
        filled = 0
        while filled < len(view):
            if not self._piece and not self._advance(len(view) - filled, bool(filled)):
                break
            count = min(len(self._piece), len(view) - filled)
            view[filled : filled + count] = self._piece[:count]
            self._piece = self._piece[count:]
            filled += count
        return filled

    def _advance(self, wanted: int, have_some: bool) -> bool:
        if self._fault is None:
            try:
                self._piece = memoryview(self.next_piece(wanted))
                return bool(self._piece)
            except SourceBroken as fault:
                self._fault = fault
        if have_some:
            return False
        raise self._fault


class FileStream(Chunked):
    """A file that somebody else opened and will close."""

    def __init__(self, opened: BinaryIO) -> None:
        super().__init__()
        self._opened = opened

    def next_piece(self, wanted: int) -> bytes:
        """What the file gives."""
        return self._opened.read(wanted)


class Part(Chunked):
    """The next ``size`` bytes of a stream."""

    def __init__(self, whole: Readable, size: int) -> None:
        super().__init__()
        self._whole = whole
        self._size = size
        self.left = size

    def next_piece(self, wanted: int) -> bytes:
        """What the stream gives; a stream that ends too early is a fault."""
        if self._fault:
            raise self._fault
        if not self.left:
            return b""
        piece = self._whole.read1(min(wanted, self.left, BUFFER_BYTES))
        if not piece:
            read = self._size - self.left
            self._fault = SourceBroken(read, f"the file ends after {read} of {self._size} bytes")
            raise self._fault
        self.left -= len(piece)
        return piece

    def skip(self) -> None:
        """Read to the end."""
        while self.next_piece(BUFFER_BYTES):
            pass


class Bounded(Chunked):
    """A stream that must not be longer than ``limit``."""

    def __init__(self, whole: Readable, limit: int) -> None:
        super().__init__()
        self._whole = whole
        self._limit = limit
        self._read = 0

    def next_piece(self, wanted: int) -> bytes:
        """What the stream gives."""
        piece = self._whole.read1(min(wanted, BUFFER_BYTES))
        self._read += len(piece)
        if self._read > self._limit:
            raise SourceBroken(self._limit, f"more than {self._limit} bytes once unpacked", "member_too_long")
        return piece


def buffered(raw: io.RawIOBase) -> io.BufferedReader:
    """The stream with `readline`, `peek` and the like."""
    return io.BufferedReader(raw, BUFFER_BYTES)


def in_memory(stream: io.BufferedReader) -> io.BytesIO:
    """The stream as something that can seek.

    Raises:
        SourceBroken: it is longer than is held in memory.
    """
    held = io.BytesIO()
    while piece := stream.read1(BUFFER_BYTES):
        held.write(piece)
        if held.tell() > IN_MEMORY_BYTES:
            reason = (
                f"longer than {IN_MEMORY_BYTES} bytes, too long for a format that has to seek inside a "
                "compressed file or an archive: unpack it"
            )
            raise SourceBroken(IN_MEMORY_BYTES, reason, "member_too_long")
    held.seek(0)
    return held
