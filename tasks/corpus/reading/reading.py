"""The one way from a file's bytes to its records.

Whatever a file holds, `read` gives what can be read of it and reports the rest, record by record where the
format allows. Only what is no fault of the file raises: a disk, a network.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO, Literal

from tasks.corpus.reading import parquet
from tasks.corpus.reading.compression import Decompressed, compression_of
from tasks.corpus.reading.csv_rows import read_csv
from tasks.corpus.reading.documents import read_document
from tasks.corpus.reading.formats import (
    DOCUMENT_FORMATS,
    HEAD_BYTES,
    Name,
    container_of,
    parse_name,
    sniff,
    why_not_text,
    wide_encoding,
)
from tasks.corpus.reading.json_values import read_json
from tasks.corpus.reading.lines import read_json_lines, read_lines
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions, Span
from tasks.corpus.reading.streams import Bounded, FileStream, SourceBroken, buffered, in_memory
from tasks.corpus.reading.tar_archive import read_tar
from tasks.corpus.reading.transcoding import Transcoded, is_wide
from tasks.corpus.reading.warc import read_warc, read_warc_gzip
from tasks.corpus.reading.zip_archive import read_zip

LINE_FORMATS = ("jsonl", "lines")
WARC_FORMATS = ("warc", "wet")
MAX_COMPRESSIONS = 2
"""A file that was compressed twice is met; one that was three times is an attack."""

MAX_CONTAINERS = 2

Contents = Iterator[RawRecord | Quarantined]


def read(opened: BinaryIO, name: str, options: ReadOptions, span: Span | None = None) -> Contents:
    """The records of a file that can seek, or of a part of it.

    ``name`` is its path: the suffixes say how it is compressed and packed and, for the format "auto", what it
    holds; the first bytes have the last word. The records of the spans of a file are together those of the
    file; where a file cannot be split, the span that begins at 0 has them all.

    Raises:
        OSError: the disk or the network fails.
    """
    opened.seek(0)
    stream = buffered(FileStream(opened))
    for item in _contents(stream, opened, name, options, span, 0):
        yield item if item.position else replace(item, position="0")


def split_kind(name: str, options: ReadOptions) -> Literal["bytes", "row_groups", None]:
    """How a file of that name may be split: by bytes, by row groups, or not at all."""
    told = parse_name(name)
    format = told.format if options.format == "auto" else options.format
    if told.compression or told.container:
        return None
    if format in LINE_FORMATS and not is_wide(options.encoding):
        return "bytes"
    return "row_groups" if format == "parquet" else None


def row_groups(opened: BinaryIO) -> int:
    """How many row groups a Parquet file has, at least 1: a damaged one tells why when it is read."""
    return parquet.row_groups(opened)


def _contents(
    stream: io.BufferedReader,
    opened: BinaryIO | None,
    name: str,
    options: ReadOptions,
    span: Span | None,
    depth: int,
) -> Contents:
    """What a file or a member holds; ``opened`` is the same bytes as something that can seek, if they can."""
    try:
        yield from _unpacked(stream, opened, name, options, span, depth)
    except SourceBroken as fault:
        if not fault.reported:
            fault.reported = True
            detail = f"byte {fault.offset}: {fault.reason}; the rest cannot be read"
            yield Quarantined(fault.position, fault.rule, detail)


def _unpacked(
    stream: io.BufferedReader,
    opened: BinaryIO | None,
    name: str,
    options: ReadOptions,
    span: Span | None,
    depth: int,
) -> Contents:
    told = parse_name(name)
    head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
    compression = compression_of(head)
    if told.compression and compression != told.compression:
        found = compression or f"begins with {head[:8].hex(' ')}" if head else "the file is empty"
        detail = f"byte 0: {told.compression} by its name, but by its bytes it is not: {found}"
        yield Quarantined("", "wrong_compression", detail, head[:200])
        return
    if compression and span:
        if span.start:
            return
        span = None
    layers = 0
    while compression:
        layers += 1
        if layers > MAX_COMPRESSIONS:
            detail = f"byte 0: compressed more than {MAX_COMPRESSIONS} times"
            yield Quarantined("", "nested_archive", detail, head[:200])
            return
        packed_in = opened if compression == "gzip" and layers == 1 else None
        if packed_in and _format(b"", told, options) in WARC_FORMATS:
            yield from read_warc_gzip(packed_in, options)
            return
        stream = buffered(Decompressed(stream, compression, options.max_ratio))
        if depth:
            stream = buffered(Bounded(stream, options.max_member_bytes))
        opened = None
        head = stream.peek(HEAD_BYTES)[:HEAD_BYTES]
        compression = compression_of(head)
        if packed_in and not compression and _format(head, told, options) in WARC_FORMATS:
            yield from read_warc_gzip(packed_in, options)
            return
    container = told.container or (container_of(head) if not told.suffix else None)
    if container is None:
        yield from _records(stream, opened, head, told, options, span)
    elif not (span and span.start):
        yield from _members(stream, opened, container, options, depth)


def _members(
    stream: io.BufferedReader, opened: BinaryIO | None, container: str, options: ReadOptions, depth: int
) -> Contents:
    if depth >= MAX_CONTAINERS:
        detail = f"byte 0: {container} in an archive in an archive; unpack the outer one"
        yield Quarantined("", "nested_archive", detail)
        return

    def member(stream: io.BufferedReader, name: str) -> Contents:
        return _contents(stream, None, name, options, None, depth + 1)

    if container == "tar":
        yield from read_tar(stream, options, member)
    else:
        yield from read_zip(opened or in_memory(stream), options, member)


def _records(
    stream: io.BufferedReader,
    opened: BinaryIO | None,
    head: bytes,
    told: Name,
    options: ReadOptions,
    span: Span | None,
) -> Contents:
    format = _format(head, told, options)
    if format == "parquet":
        yield from parquet.read_parquet(opened or in_memory(stream), options, span)
        return
    first = span is None or span.start == 0
    reason = why_not_text(head) if format not in ("pdf", *WARC_FORMATS) else None
    if format is None or (reason and format in DOCUMENT_FORMATS):
        if first:
            yield Quarantined("", "not_text", f"byte 0: not text but {reason}", head[:200])
        return
    if format in LINE_FORMATS and span and span.start and opened and not wide_encoding(head):
        opened.seek(span.start - 1)
        stream = buffered(FileStream(opened))
    elif not first:
        return
    if format in DOCUMENT_FORMATS:
        yield from read_document(stream, format, options)
        return
    if format in WARC_FORMATS:
        yield from read_warc(stream, options)
        return
    wide = options.encoding if is_wide(options.encoding) else wide_encoding(head)
    if wide and (options.encoding is None or is_wide(options.encoding)):
        stream = buffered(Transcoded(stream, wide))
        options = replace(options, encoding=None)
        span = None
    if format == "jsonl":
        yield from read_json_lines(stream, options, span)
    elif format == "lines":
        yield from read_lines(stream, options, span)
    elif format == "json":
        yield from read_json(stream, options)
    else:
        yield from read_csv(stream, options, options.delimiter or ("\t" if format == "tsv" else None))


def _format(head: bytes, told: Name, options: ReadOptions) -> str | None:
    return options.format if options.format != "auto" else told.format or sniff(head, told.suffix)
