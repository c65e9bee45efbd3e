"""Formats that are read line by line: one text a line, and JSON Lines."""

from __future__ import annotations

import io
from collections.abc import Iterator

from tasks.corpus.reading.mapping import invalid_bytes, record_from_json, too_long
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions, Span, clean_unicode
from tasks.corpus.reading.streams import SourceBroken

BOM = b"\xef\xbb\xbf"


def read_json_lines(
    stream: io.BufferedReader, options: ReadOptions, span: Span | None
) -> Iterator[RawRecord | Quarantined]:
    """One JSON object a line; a blank line is no record, a BOM before the first is no fault."""
    for offset, line, whole in lines(stream, options.max_record_bytes, span):
        if not whole:
            yield too_long(str(offset), offset, line, options, "line")
        elif line and not line.isspace():
            yield record_from_json(line, str(offset), offset, options)


def read_lines(
    stream: io.BufferedReader, options: ReadOptions, span: Span | None
) -> Iterator[RawRecord | Quarantined]:
    """One text a line; a blank line is no record."""
    encoding = options.encoding or "utf-8"
    for offset, line, whole in lines(stream, options.max_record_bytes, span):
        if not whole:
            yield too_long(str(offset), offset, line, options, "line")
        elif line and not line.isspace():
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            try:
                text, replaced = clean_unicode(line.decode(encoding))
            except UnicodeDecodeError as error:
                yield invalid_bytes(line, str(offset), offset, error)
            else:
                yield RawRecord(str(offset), text, {}, replaced)


def lines(stream: io.BufferedReader, limit: int, span: Span | None) -> Iterator[tuple[int, bytes, bool]]:
    """Lines with the offset of their first byte, and whether they are whole.

    A line longer than ``limit`` comes as its beginning. With a span: the lines that begin in it, whereby the
    stream stands at its start, or one byte before unless that is 0. A BOM at offset 0 is taken off.

    Raises:
        SourceBroken: the stream breaks; the line that it breaks is the fault's position.
    """
    offset, stop = (span.start, span.stop) if span else (0, None)
    try:
        if offset:
            offset += _skip_line(stream) - 1
        while stop is None or offset < stop:
            line = stream.readline(limit + 1)
            if not line:
                return
            start = offset
            offset += len(line)
            whole = len(line) <= limit or line.endswith(b"\n")
            if not whole:
                offset += _skip_line(stream)
            elif start == 0 and line.startswith(BOM):
                line = line[len(BOM) :]
            yield start, line, whole
    except SourceBroken as fault:
        fault.position = str(offset)
        raise


def _skip_line(stream: io.BufferedReader) -> int:
    skipped = 0
    while chunk := stream.readline(2**20):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return skipped
