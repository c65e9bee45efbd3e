"""Where the records of a WARC file begin and end (ISO 28500, clause 5)."""

from __future__ import annotations

import io
from dataclasses import dataclass

from tasks.corpus.reading.streams import Part, SourceBroken

MAX_HEADER_BYTES = 2**16


@dataclass(frozen=True)
class Record:
    """A record's header: names in lower case, the block's length, and where in the stream it begins."""

    offset: int
    headers: dict[str, str]
    length: int


@dataclass(frozen=True)
class BadRecord:
    """Something that stands where a record should."""

    offset: int
    reason: str
    raw: bytes


class WarcRecords:
    """Records one after another. After a bad one, reading goes on at the next line that begins like one."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._offset = 0
        self._block: Part | None = None
        self._lost = False
        self.begun = 0  # offset of the record that is being read

    def next(self) -> Record | BadRecord | None:
        """The next record's header; None at the end.

        Raises:
            SourceBroken: the stream breaks, or ends within a header.
        """
        self.skip_block()
        line = self._first_line()
        if line.startswith(b"WARC/"):
            self._lost = False
            return self._header(line) if line else None
        if line and not self._lost:
            self._lost = True
            return BadRecord(self.begun, "no WARC record begins here", line[:200])
        while line and not line.startswith(b"WARC/1"):
            line = self._whole_line()
        self._lost = False
        return self._header(line) if line else None

    def block(self) -> bytes:
        """The block of the record whose header was given last."""
        if self._block is None:
            return b""
        block = io.BytesIO()
        while piece := self._block.next_piece(2**20):
            block.write(piece)
            self._offset += len(piece)
        self._block = None
        return block.getvalue()

    def skip_block(self) -> None:
        """Go past the block, if it was not read."""
        if self._block is not None:
            while piece := self._block.next_piece(2**20):
                self._offset += len(piece)
            self._block = None

    def _line(self) -> bytes:
        self.begun = self._offset
        line = self._stream.readline(MAX_HEADER_BYTES)
        self._offset += len(line)
        return line

    def _whole_line(self) -> bytes:
        """The beginning of the next line."""
        begun, line = self._offset, self._line()
        part = line
        while part and not part.endswith(b"\n"):
            part = self._line()
        self.begun = begun
        return line

    def _first_line(self) -> bytes:
        line = self._whole_line()
        while line and not line.strip():
            line = self._whole_line()
        return line

    def _header(self, first: bytes) -> Record | BadRecord:
        begun = self.begun
        headers: dict[str, str] = {}
        name = ""
        while True:
            line = self._line()
            if not line:
                raise SourceBroken(self._offset, "the file ends within a record's header")
            if self._offset - begun > MAX_HEADER_BYTES:
                return self._bad(begun, "its header does not end", first)
            if not line.strip():
                break
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text[:1] in " \t" and name:
                headers[name] += " " + text.strip()
                continue
            name, _, value = text.partition(":")
            name = name.strip().lower()
            headers[name] = value.strip()
        self.begun = begun
        length = headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 16):
            return self._bad(begun, f"its Content-Length is {length[:40]!r}, not a number", first)
        self._block = Part(self._stream, int(length))
        return Record(begun, headers, int(length))

    def _bad(self, begun: int, reason: str, raw: bytes) -> BadRecord:
        self.begun = begun
        self._lost = True
        return BadRecord(begun, reason, raw[:200])
