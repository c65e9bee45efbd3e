"""UTF-16 and UTF-32 made UTF-8, so that lines end where a byte says so."""

from __future__ import annotations

import codecs

from tasks.corpus.reading.streams import BUFFER_BYTES, Chunked, Readable, SourceBroken


def is_wide(encoding: str | None) -> bool:
    """Whether a character takes several bytes in which a newline may seem to stand."""
    return encoding is not None and codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


class Transcoded(Chunked):
    """A stream in a wide encoding as UTF-8; half a surrogate pair stays one, and costs its record."""

    def __init__(self, stream: Readable, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._read = 0
        self._ended = False

    def next_piece(self, wanted: int) -> bytes:
        """What the next bytes mean."""
        while not self._ended:
            raw = self._stream.read1(BUFFER_BYTES)
            self._ended = not raw
            try:
                text = self._decoder.decode(raw, final=self._ended)
            except UnicodeError as error:
                raise SourceBroken(self._read, f"{error}") from error
            self._read += len(raw)
            if text:
                return text.encode("utf-8", "surrogatepass")
        return b""
