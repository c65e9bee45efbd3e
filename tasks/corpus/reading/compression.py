"""Compressed streams: every member, every byte before a break, and never a bomb."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Protocol

from tasks.corpus.reading.streams import BUFFER_BYTES, Chunked, Readable, SourceBroken

MAGIC = {
    "gzip": (b"\x1f\x8b\x08",),
    "zstd": (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + i]) + b"\x2a\x4d\x18" for i in range(16))),
    "bzip2": tuple(
        b"BZh%d" % level + block
        for level in range(1, 10)
        for block in (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")
    ),
    "xz": (b"\xfd7zXZ\x00",),
}
"""What the formats begin with: RFC 1952, RFC 8878 (frames and skippable frames), bzip2, the .xz format."""

LONGEST_MAGIC = 10
ALWAYS_GRANTED = 64 * 2**20
DECODER_MEMORY = 2**28
SMALL_INPUT, SMALL_PIECE = 1024, 4096


def compression_of(head: bytes) -> str | None:
    """Which compression a file's first bytes tell of."""
    return next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)


class Decompressed(Chunked):
    """The bytes inside a compressed stream, all of its members (frames, streams) one after another.

    ``compression`` is one of `MAGIC`, or "deflate" and "zlib" for a bare stream of that kind. ``start`` is
    what the stream's first byte counts as. ``members`` has the start of each member that was begun:
    decompressed offset, compressed offset; who needs it takes off its left what is passed.
    """

    def __init__(self, compressed: Readable, compression: str, max_ratio: float, start: int = 0) -> None:
        super().__init__()
        self.members: deque[tuple[int, int]] = deque()
        self._compressed = compressed
        self._compression = compression
        self._max_ratio = max_ratio
        self._start = start
        self.consumed = start  # compressed bytes that a decoder has taken
        self._produced = 0
        self._input = b""
        self._pieces = self._decompress()

    def next_piece(self, wanted: int) -> bytes:
        """What the next compressed bytes hold."""
        for piece in self._pieces:
            if piece:
                self._produced += len(piece)
                self._check_ratio()
                return piece
        return b""

    def _decompress(self) -> Iterator[bytes]:
        bare = self._compression not in MAGIC
        while bare or self._at_member():
            self.members.append((self._produced, self.consumed))
            decoder = _DECODERS[self._compression]()
            while not decoder.done:
                if not self._input and not self._more():
                    raise self._broken("the file ends too early")
                try:
                    yield from self._feed(decoder)
                except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError) as error:
                    raise self._broken(str(error)) from error
                except MemoryError as error:
                    raise self._broken("it needs too much memory") from error
            if bare:
                return

    def _feed(self, decoder: _Decoder) -> Iterator[bytes]:
        taken = self._input[: decoder.input_bytes]
        self._input = self._input[decoder.input_bytes :]
        self.consumed += len(taken)
        yield from decoder.decompress(taken)
        unused = decoder.unused()
        self.consumed -= len(unused)
        self._input = unused + self._input

    def _at_member(self) -> bool:
        """Whether another member begins; what else may stand between members is padding with zeros."""
        while len(self._input) < LONGEST_MAGIC and self._more():
            pass
        if self.consumed > self._start:
            while self._input.startswith(b"\0"):
                padded = len(self._input)
                self._input = self._input.lstrip(b"\0")
                self.consumed += padded - len(self._input)
                while len(self._input) < LONGEST_MAGIC and self._more():
                    pass
            if not self._input:
                return False
            if compression_of(self._input) != self._compression:
                raise self._broken("something else follows the compressed data")
        elif not self._input:
            raise self._broken("the file is empty")
        return True

    def _more(self) -> bool:
        try:
            added = self._compressed.read1(BUFFER_BYTES // 4)
        except SourceBroken as fault:
            fault.offset = self._produced
            raise
        self._input += added
        return bool(added)

    def _check_ratio(self) -> None:
        taken = max(1, self.consumed - self._start)
        if self._produced > max(ALWAYS_GRANTED, self._max_ratio * taken):
            raise SourceBroken(
                self._produced,
                f"{taken} compressed bytes give more than {self._produced} (max_ratio = {self._max_ratio:g})",
                "decompression_bomb",
            )

    def _broken(self, reason: str) -> SourceBroken:
        return SourceBroken(
            self._produced, f"{self._compression}, byte {self.consumed} of the compressed data: {reason}"
        )


class _Decoder(Protocol):
    input_bytes: int

    @property
    def done(self) -> bool: ...
    def decompress(self, data: bytes) -> Iterator[bytes]: ...
    def unused(self) -> bytes: ...


class _Zlib:
    input_bytes = BUFFER_BYTES // 4

    def __init__(self, window: int) -> None:
        self._state = zlib.decompressobj(window)

    @property
    def done(self) -> bool:
        return self._state.eof

    def decompress(self, data: bytes) -> Iterator[bytes]:
        while True:
            before = self._state.copy()
            try:
                piece = self._state.decompress(data, BUFFER_BYTES)
            except zlib.error:
                # zlib drops what it had made of this input: make it again up to the bad byte
                for byte in data:
                    yield before.decompress(bytes([byte]))
                raise
            yield piece
            data = self._state.unconsumed_tail
            if self._state.eof or (not data and len(piece) < BUFFER_BYTES):
                return

    def unused(self) -> bytes:
        return self._state.unused_data


class _Streams:
    """bz2 and lzma, which have one interface. Small pieces, so that little is lost when one fails."""

    input_bytes = BUFFER_BYTES // 4

    def __init__(self, state: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._state = state

    @property
    def done(self) -> bool:
        return self._state.eof

    def decompress(self, data: bytes) -> Iterator[bytes]:
        yield self._state.decompress(data, SMALL_PIECE)
        while not self._state.eof and not self._state.needs_input:
            yield self._state.decompress(b"", SMALL_PIECE)

    def unused(self) -> bytes:
        return self._state.unused_data if self._state.eof else b""


class _Zstd:
    input_bytes = SMALL_INPUT  # one call gives all that its input holds: at most 16 MiB for each 512 bytes

    def __init__(self) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._state = zstandard.ZstdDecompressor(max_window_size=DECODER_MEMORY).decompressobj()

    @property
    def done(self) -> bool:
        return self._state.eof

    def decompress(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._state.decompress(data)
        except self._error as error:
            raise ValueError(str(error)) from error

    def unused(self) -> bytes:
        return self._state.unused_data


_DECODERS = {
    "gzip": lambda: _Zlib(16 + zlib.MAX_WBITS),
    "zlib": lambda: _Zlib(zlib.MAX_WBITS),
    "deflate": lambda: _Zlib(-zlib.MAX_WBITS),
    "bzip2": lambda: _Streams(bz2.BZ2Decompressor()),
    "xz": lambda: _Streams(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DECODER_MEMORY)),
    "zstd": _Zstd,
}
