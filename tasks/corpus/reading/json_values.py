"""JSON that is not one record a line: an object, several, or arrays of objects or strings, streamed."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tasks.corpus.reading.mapping import record_from_json, too_long
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions
from tasks.corpus.reading.streams import BUFFER_BYTES, SourceBroken

_STRUCTURE = re.compile(rb'["\[\]{},]')
_STRING_BODY = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.S)
_UP_TO_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+', re.S)
_BOM = b"\xef\xbb\xbf"


def read_json(stream: io.BufferedReader, options: ReadOptions) -> Iterator[RawRecord | Quarantined]:
    """The objects of a file, and the elements of its arrays, one at a time.

    Records are cut apart by their brackets alone, so one that is not JSON costs itself, unless its brackets
    or quotes do not pair. An array that does not end is reported after its last whole element.
    """
    scan = _Scan(options.max_record_bytes)
    try:
        while chunk := stream.read1(BUFFER_BYTES):
            for value in scan.values(chunk):
                yield _record(value, options)
    except SourceBroken as fault:
        fault.position = str(scan.begun if scan.begun is not None else scan.offset)
        raise
    for value in scan.rest():
        yield _record(value, options)
    if scan.in_array:
        detail = f"byte {scan.offset}: the file ends before its array does"
        yield Quarantined(str(scan.offset), "source_broken", detail)


@dataclass(frozen=True)
class _Value:
    offset: int
    raw: bytes
    whole: bool


def _record(value: _Value, options: ReadOptions) -> RawRecord | Quarantined:
    if not value.whole:
        return too_long(str(value.offset), value.offset, value.raw, options)
    return record_from_json(value.raw, str(value.offset), value.offset, options, bare_strings=True)


@dataclass
class _Scan:
    """Where in the structure the scan stands; fed with chunks of any size."""

    limit: int
    offset: int = 0  # of the next byte to come
    in_array: bool = False
    begun: int | None = None  # offset of the value that has begun
    _depth: int = 0  # of brackets open inside the value
    _in_string: bool = False
    _escaped: bool = False  # the last chunk ended within an escape
    _size: int = 0
    _held: list[bytes] = field(default_factory=list)

    def values(self, chunk: bytes) -> Iterator[_Value]:
        """The values that end in this chunk."""
        if self.offset == 0 and chunk.startswith(_BOM):
            self.offset = len(_BOM)
            chunk = chunk[len(_BOM) :]
        base, at, taken = self.offset, 0, 0
        while at < len(chunk):
            if self._in_string:
                at = self._string(chunk, at)
                if self._in_string or self._depth or self.in_array:
                    continue
                taken = self._take(chunk, taken, at, base)
                yield from self._end()
                continue
            if self._depth and (flat := _UP_TO_BRACKET.match(chunk, at)):
                at = flat.end()
            found = _STRUCTURE.search(chunk, at)
            if found is None:
                break
            token, start, at = found[0], found.start(), found.end()
            if token == b'"':
                self._in_string = True
            elif token in b"{[":
                if token == b"[" and not self._depth and not self.in_array:
                    taken = self._take(chunk, taken, start, base)
                    yield from self._end()
                    self.in_array, taken = True, at
                else:
                    self._depth += 1
            elif token == b",":
                if self.in_array and not self._depth:
                    taken = self._take(chunk, taken, start, base) + 1
                    yield from self._end()
            elif self._depth:
                self._depth -= 1
                if not self._depth and not self.in_array:
                    taken = self._take(chunk, taken, at, base)
                    yield from self._end()
            elif self.in_array and token == b"]":
                taken = self._take(chunk, taken, start, base) + 1
                yield from self._end()
                self.in_array = False
        self._take(chunk, taken, len(chunk), base)
        self.offset = base + len(chunk)

    def rest(self) -> Iterator[_Value]:
        """What the file ended in the middle of."""
        yield from self._end()

    def _string(self, chunk: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            at += 1
        found = _STRING_BODY.match(chunk, at)
        at = found.end() if found else at
        if at < len(chunk):
            if chunk[at] == ord('"'):
                self._in_string = False
            else:
                self._escaped = True
            at += 1
        return at

    def _take(self, chunk: bytes, start: int, stop: int, base: int) -> int:
        """Put a stretch of the chunk to the value, without the white space before it."""
        part = chunk[start:stop]
        if self.begun is None:
            part = part.lstrip()
            if part:
                self.begun = base + stop - len(part)
        if part:
            self._size += len(part)
            if self._size <= self.limit or not self._held:
                self._held.append(part)
        return stop

    def _end(self) -> Iterator[_Value]:
        if self.begun is not None:
            raw = b"".join(self._held)
            yield _Value(self.begun, raw.rstrip(), self._size <= self.limit)
        self.begun, self._size, self._held = None, 0, []
