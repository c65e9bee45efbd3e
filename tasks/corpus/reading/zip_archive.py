"""Zip: by its directory, and header by header where that is cut off (PKWARE's APPNOTE, 4.3).

zipfile reads the directory; members are unpacked here, because what zipfile has made before a break is lost.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tasks.corpus.reading.archives import Contents, Members, ReadMember, member_contents
from tasks.corpus.reading.compression import ALWAYS_GRANTED, Decompressed
from tasks.corpus.reading.records import Quarantined, ReadOptions
from tasks.corpus.reading.streams import (
    BUFFER_BYTES,
    Chunked,
    FileStream,
    Part,
    Readable,
    SourceBroken,
    buffered,
)

_LOCAL_HEADER = struct.Struct("<4sHHHHHIIIHH")
_ENCRYPTED, _SIZES_FOLLOW, _UTF8 = 0x1, 0x8, 0x800
_METHODS = {8: "deflate", 12: "bzip2", 93: "zstd", 95: "xz"}
_STORED = 0
_NO_DIRECTORY = (
    zipfile.BadZipFile,
    NotImplementedError,
    ValueError,
    EOFError,
    OverflowError,
    IndexError,
    struct.error,
)
_UNKNOWN_SIZE = 0xFFFFFFFF


def read_zip(opened: BinaryIO, options: ReadOptions, read: ReadMember) -> Contents:
    """The members that are files, each read by ``read``; one that is damaged or encrypted costs itself."""
    size = opened.seek(0, io.SEEK_END)
    budget = _Budget(max(ALWAYS_GRANTED, options.max_ratio * size), options.max_ratio)
    members = Members(options)
    try:
        opened.seek(0)
        entries = _directory(opened)
    except _NO_DIRECTORY as error:
        walk = _Walk(opened)
        for entry in walk.entries():
            walk.unpacking = None
            yield from _member(opened, entry, members, options, budget, read, walk)
            if budget.spent:
                return
        if members.count <= options.max_members:
            detail = f"byte {walk.offset}: the archive has no directory ({error}); it ends here"
            yield Quarantined("", "source_broken", detail)
        return
    for entry in entries:
        yield from _member(opened, entry, members, options, budget, read, None)
        if budget.spent or members.count > options.max_members:
            return


@dataclass(frozen=True)
class _Entry:
    """A member as its directory or its own header tells of it; None for what is not known."""

    offset: int
    name: str
    flags: int
    method: int
    packed: int | None
    size: int | None
    checksum: int | None
    mode: int = 0


class _Budget:
    """What all members together may unpack to: members may overlap, so each alone proves nothing."""

    def __init__(self, left: float, max_ratio: float) -> None:
        self._left = left
        self._max_ratio = max_ratio
        self.spent = False

    def spend(self, count: int, offset: int) -> None:
        self._left -= count
        if self._left < 0:
            self.spent = True
            reason = f"the archive unpacks to more than max_ratio = {self._max_ratio:g} times its bytes"
            raise SourceBroken(offset, reason, "decompression_bomb")


class _Checked(Chunked):
    """A member's bytes, counted and summed up on their way."""

    def __init__(self, stream: Readable, entry: _Entry, budget: _Budget, limit: int) -> None:
        super().__init__()
        self._stream = stream
        self._entry = entry
        self._budget = budget
        self._limit = limit
        self._read = 0
        self._checksum = 0

    def next_piece(self, wanted: int) -> bytes:
        piece = self._stream.read1(min(wanted, BUFFER_BYTES))
        self._read += len(piece)
        if self._read > self._limit:
            raise SourceBroken(self._limit, f"more than {self._limit} bytes once unpacked", "member_too_long")
        self._budget.spend(len(piece), self._read)
        self._checksum = zlib.crc32(piece, self._checksum)
        if not piece and self._entry.checksum not in (None, self._checksum):
            raise SourceBroken(self._read, "the checksum of the archive's directory is another")
        return piece


def _directory(opened: BinaryIO) -> list[_Entry]:
    with zipfile.ZipFile(opened) as archive:
        return [
            _Entry(
                info.header_offset,
                info.filename,
                info.flag_bits,
                info.compress_type,
                info.compress_size,
                info.file_size,
                info.CRC,
                info.external_attr >> 16 if info.create_system == 3 else 0,
            )
            for info in archive.infolist()
        ]


def _member(
    opened: BinaryIO,
    entry: _Entry,
    members: Members,
    options: ReadOptions,
    budget: _Budget,
    read: ReadMember,
    walk: _Walk | None,
) -> Contents:
    if entry.name.endswith("/"):
        return
    too_many = members.too_many(entry.offset)
    if too_many:
        yield too_many
        return
    member = members.selected(entry.name)
    if member is None:
        return
    problem = members.refused(member, entry.offset, entry.size or 0) or _problem(member, entry)
    if problem:
        yield problem
        return
    try:
        packed = _packed(opened, entry)
    except SourceBroken as fault:
        yield Quarantined(member, fault.rule, f"byte {entry.offset}: {fault.reason}")
        return
    if entry.method != _STORED:
        packed = Decompressed(packed, _METHODS[entry.method], options.max_ratio)
        if walk:
            walk.unpacking = packed
        packed = buffered(packed)
    stream = buffered(_Checked(packed, entry, budget, options.max_member_bytes))
    yield from member_contents(read, stream, member)


def _problem(member: str, entry: _Entry) -> Quarantined | None:
    where = f"byte {entry.offset}"
    if entry.flags & _ENCRYPTED:
        return Quarantined(member, "encrypted", f"{where}: the member is encrypted")
    if stat.S_IFMT(entry.mode) not in (0, stat.S_IFREG):
        what = "a symbolic link" if stat.S_ISLNK(entry.mode) else "a special file"
        return Quarantined(member, "not_a_file", f"{where}: {what}")
    if entry.method != _STORED and entry.method not in _METHODS:
        known = ", ".join(str(method) for method in (_STORED, *_METHODS))
        detail = f"{where}: compression method {entry.method}; known are {known}"
        return Quarantined(member, "unknown_compression", detail)
    if entry.packed is None and entry.method == _STORED:
        return Quarantined(member, "source_broken", f"{where}: its length stands in the directory alone")
    return None


def _packed(opened: BinaryIO, entry: _Entry) -> io.BufferedReader:
    """The member's bytes as they lie in the archive."""
    opened.seek(entry.offset)
    header = opened.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size or header[:4] != b"PK\x03\x04":
        raise SourceBroken(0, "the directory tells of a member that is not there")
    name_length, extra_length = _LOCAL_HEADER.unpack(header)[-2:]
    opened.seek(entry.offset + _LOCAL_HEADER.size + name_length + extra_length)
    stream = buffered(FileStream(opened))
    return stream if entry.packed is None else buffered(Part(stream, entry.packed))


class _Walk:
    """From one member's own header to the next."""

    def __init__(self, opened: BinaryIO) -> None:
        self._opened = opened
        self.offset = 0
        self.unpacking: Decompressed | None = None  # how the member that was given last is being unpacked

    def entries(self) -> Iterator[_Entry]:
        while self._find_header():
            self._opened.seek(self.offset)
            header = self._opened.read(_LOCAL_HEADER.size)
            if len(header) < _LOCAL_HEADER.size:
                return
            _, _, flags, method, _, _, checksum, packed, size, name_length, extra_length = (
                _LOCAL_HEADER.unpack(header)
            )
            raw_name = self._opened.read(name_length)
            packed, size = _long_sizes(self._opened.read(extra_length), packed, size)
            name = raw_name.decode("utf-8" if flags & _UTF8 else "cp437", "replace")
            known = not flags & _SIZES_FOLLOW
            data = self.offset + _LOCAL_HEADER.size + name_length + extra_length
            yield _Entry(
                self.offset,
                name,
                flags,
                method,
                packed if known else None,
                size if known else None,
                checksum if known else None,
            )
            if known:
                self.offset = data + packed
            else:
                self.offset = data + (self.unpacking.consumed if self.unpacking else 0)

    def _find_header(self) -> bool:
        """Go to the next header of a member; False at the archive's directory or at the end."""
        self._opened.seek(self.offset)
        window = b""
        while chunk := self._opened.read(BUFFER_BYTES):
            window += chunk
            at = window.find(b"PK\x03\x04")
            end = window.find(b"PK\x01\x02")
            if at >= 0 and (end < 0 or at < end):
                self.offset += at
                return True
            if end >= 0:
                self.offset += end
                return False
            self.offset += max(0, len(window) - 3)
            window = window[-3:]
        self.offset += len(window)
        return False


def _long_sizes(extra: bytes, packed: int, size: int) -> tuple[int, int]:
    """The sizes from the zip64 field, where the header leaves them to it."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1 and length >= 16 and _UNKNOWN_SIZE in (packed, size):
            size, packed = struct.unpack_from("<QQ", extra, at + 4)
        at += 4 + length
    return packed, size
