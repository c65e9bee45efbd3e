"""Tar (POSIX ustar and pax, GNU), as a stream: what was there before a break is read.

tarfile parses the header blocks; the walk from one to the next is here, because tarfile takes a damaged
header for the end of the archive and holds extended headers of any length.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from tasks.corpus.reading.archives import Contents, Members, ReadMember, member_contents
from tasks.corpus.reading.records import Quarantined, ReadOptions
from tasks.corpus.reading.streams import Part, SourceBroken, buffered

BLOCK = tarfile.BLOCKSIZE
MAX_EXTENDED_BYTES = 2**20
_KINDS = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a character device",
    tarfile.BLKTYPE: "a block device",
    tarfile.FIFOTYPE: "a FIFO",
    tarfile.GNUTYPE_SPARSE: "a sparse file",
}
_NAMES_WITHIN = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_PAX = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


def read_tar(stream: io.BufferedReader, options: ReadOptions, read: ReadMember) -> Contents:
    """The members that are files, each read by ``read``; links, devices and sparse files are reported.

    A damaged header costs what follows it up to the next header; an archive that breaks off, its tail.
    """
    members = Members(options)
    walk = _Walk(stream)
    try:
        for entry in walk.entries():
            if isinstance(entry, Quarantined):
                yield entry
                continue
            if entry.info.isdir():
                continue
            too_many = members.too_many(entry.offset)
            if too_many:
                yield too_many
                return
            member = members.selected(entry.name)
            if member is None:
                continue
            refused = members.refused(member, entry.offset, entry.part.left)
            special = _KINDS.get(entry.info.type) or ("a sparse file" if entry.sparse else None)
            if refused:
                yield refused
            elif special:
                link = f" to {entry.info.linkname[:200]!r}" if entry.info.linkname else ""
                yield Quarantined(member, "not_a_file", f"byte {entry.offset}: {special}{link}")
            else:
                yield from member_contents(read, buffered(entry.part), member)
    except SourceBroken as fault:
        fault.offset = max(fault.offset, walk.offset)
        raise


@dataclass(frozen=True)
class _Entry:
    offset: int
    name: str
    info: tarfile.TarInfo
    part: Part
    sparse: bool


@dataclass
class _Extended:
    """What extended headers say of the next member, and, under ``always``, of all that follow."""

    always: dict[str, str] = field(default_factory=dict)
    once: dict[str, str] = field(default_factory=dict)

    def get(self, key: str) -> str | None:
        return self.once.get(key, self.always.get(key))

    def sparse(self) -> bool:
        return any(key.startswith("GNU.sparse.") for key in self.once)


class _Walk:
    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self.offset = 0

    def entries(self) -> Iterator[_Entry | Quarantined]:
        extended = _Extended()
        ended = lost = False
        while True:
            begun = self.offset
            block = self._stream.read(BLOCK)
            self.offset += len(block)
            if not block and ended:
                return
            if len(block) < BLOCK:
                if ended and not block.strip(b"\0"):
                    return
                raise SourceBroken(begun, "the tar archive ends without its end mark")
            if block.count(0) == BLOCK:
                ended = True
                continue
            try:
                info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
                if info.size < 0 or ((lost or ended) and block[257:262] != b"ustar"):
                    raise tarfile.HeaderError("no header")
            except tarfile.HeaderError as error:
                if not lost and not ended:
                    lost = True
                    detail = f"byte {begun}: no tar header ({error}); going on at the next one"
                    yield Quarantined("", "invalid_tar", detail, block[:200])
                continue
            lost = ended = False
            if info.type in _NAMES_WITHIN or info.type in _PAX:
                problem = self._extend(extended, info, begun)
                if problem:
                    yield problem
                continue
            entry = self._entry(info, extended, begun)
            extended.once = {}
            if info.type == tarfile.GNUTYPE_SPARSE:
                self._skip_sparse_map(block)
            size = entry.part.left
            yield entry
            entry.part.skip()
            self._pad(size)

    def _entry(self, info: tarfile.TarInfo, extended: _Extended, begun: int) -> _Entry:
        size = extended.get("size")
        if size and size.isascii() and size.isdigit() and len(size) < 20:
            info.size = int(size)
        info.linkname = extended.get("linkpath") or info.linkname
        name = extended.get("GNU.sparse.name") or extended.get("path") or info.name
        length = 0 if info.type in _KINDS and info.type != tarfile.GNUTYPE_SPARSE else info.size
        part = Part(self._stream, length)
        return _Entry(begun, name, info, part, extended.sparse())

    def _extend(self, extended: _Extended, info: tarfile.TarInfo, begun: int) -> Quarantined | None:
        part = Part(self._stream, info.size)
        if info.size > MAX_EXTENDED_BYTES:
            part.skip()
            self._pad(info.size)
            detail = f"byte {begun}: an extended header of {info.size} bytes; it is passed over"
            return Quarantined("", "invalid_tar", detail)
        raw = buffered(part).read()
        self._pad(info.size)
        if info.type == tarfile.GNUTYPE_LONGNAME:
            extended.once["path"] = _text(raw.partition(b"\0")[0])
        elif info.type == tarfile.GNUTYPE_LONGLINK:
            extended.once["linkpath"] = _text(raw.partition(b"\0")[0])
        else:
            (extended.always if info.type == tarfile.XGLTYPE else extended.once).update(_pax(raw))
        return None

    def _skip_sparse_map(self, block: bytes) -> None:
        """Go past the blocks that hold the rest of an old GNU sparse map."""
        more = block[482:483]
        while more not in (b"", b"\0"):
            more = self._stream.read(BLOCK)[504:505]
            self.offset += BLOCK

    def _pad(self, size: int) -> None:
        self.offset += size
        padding = -size % BLOCK
        self.offset += len(self._stream.read(padding))


def _pax(raw: bytes) -> dict[str, str]:
    """Records ``length key=value\\n``, as far as they are well formed."""
    found: dict[str, str] = {}
    at = 0
    while at < len(raw):
        digits = raw[at : at + 12].partition(b" ")[0]
        if not digits.isdigit() or int(digits) <= len(digits) + 1:
            break
        key, _, value = raw[at + len(digits) + 1 : at + int(digits) - 1].partition(b"=")
        found[_text(key)] = _text(value)
        at += int(digits)
    return found


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
