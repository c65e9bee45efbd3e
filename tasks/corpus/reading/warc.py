"""WARC (ISO 28500) and WET: pages as a crawler met them."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import BinaryIO

from tasks.corpus.reading.compression import MAGIC, Decompressed
from tasks.corpus.reading.documents import text_document
from tasks.corpus.reading.http_message import NoPage, http_page, typed_page
from tasks.corpus.reading.mapping import kept_fields, lookup
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions, kept_value
from tasks.corpus.reading.streams import BUFFER_BYTES, FileStream, SourceBroken, buffered
from tasks.corpus.reading.warc_records import BadRecord, WarcRecords

PAGE_TYPES = {"response", "resource", "conversion"}
OTHER_TYPES = {"request", "metadata", "warcinfo", "revisit"}


def read_warc(
    stream: io.BufferedReader, options: ReadOptions, locate: Callable[[int], str] = str
) -> Iterator[RawRecord | Quarantined]:
    """The pages of a WARC or WET file.

    Responses, resources and conversions that hold a text are documents. ``url``, ``warc_date``,
    ``content_type`` and ``record_id`` may be kept as fields. Records that are about others, and those of DNS,
    are passed over. ``locate`` gives the position of a record from its offset in the stream.
    """
    records = WarcRecords(stream)
    try:
        while (record := records.next()) is not None:
            position = locate(record.offset)
            if isinstance(record, BadRecord):
                yield Quarantined(position, "invalid_warc", f"byte {position}: {record.reason}", record.raw)
            elif _is_about_others(record.headers):
                records.skip_block()
            elif record.length > options.max_record_bytes:
                limit = options.max_record_bytes
                detail = f"byte {position}: {record.length} bytes, more than max_record_bytes = {limit}"
                yield Quarantined(position, "record_too_long", detail)
            else:
                yield _page(record.headers, records.block(), position, options)
    except SourceBroken as fault:
        fault.position = locate(records.begun)
        raise


def read_warc_gzip(opened: BinaryIO, options: ReadOptions) -> Iterator[RawRecord | Quarantined]:
    """The pages of a gzipped WARC file, positions in the compressed file; a damaged member costs itself.

    A record that is not the first of its member has the position ``member+offset`` with its offset within.
    """
    start: int | None = 0
    while start is not None:
        opened.seek(start)
        source = Decompressed(buffered(FileStream(opened)), "gzip", options.max_ratio, start)
        try:
            yield from read_warc(buffered(source), options, _Locator(source))
            return
        except SourceBroken as fault:
            detail = f"byte {source.consumed}: {fault.reason}; going on at the next record that can be found"
            yield Quarantined(fault.position or str(start), fault.rule, detail)
            damaged = source.members[-1][1] if source.members else start
            start = _next_member(opened, max(start, damaged) + 1)


def _is_about_others(headers: dict[str, str]) -> bool:
    kind = headers.get("warc-type", "").lower()
    about_names = headers.get("content-type", "").lower().startswith("text/dns")
    return kind in OTHER_TYPES or about_names or headers.get("warc-target-uri", "").startswith("dns:")


def _page(
    headers: dict[str, str], block: bytes, position: str, options: ReadOptions
) -> RawRecord | Quarantined:
    kind = headers.get("warc-type", "").lower()
    url = headers.get("warc-target-uri", "").strip("<>")
    content_type = headers.get("content-type", "")
    where = f"byte {position}: {url[:200]}"
    if kind not in PAGE_TYPES:
        return Quarantined(position, "unknown_record", f"{where}: WARC-Type {kind[:40]!r}", block[:200])
    wrapped = content_type.lower().startswith("application/http")
    page = http_page(block, options) if wrapped else typed_page(block, content_type)
    if isinstance(page, NoPage):
        return Quarantined(position, page.rule, f"{where}: {page.reason}", block[:200])
    found = text_document(page.body, position, options.encoding or page.charset, page.markup)
    if isinstance(found, Quarantined):
        return replace(found, detail=f"{where}: in the body, {found.detail}")
    offered = {
        "url": url,
        "warc_date": headers.get("warc-date", ""),
        "content_type": page.content_type,
        "record_id": headers.get("warc-record-id", "").strip("<>"),
    }
    identity = kept_value(lookup(offered, options.id_field)) if options.id_field else None
    return replace(found, fields=kept_fields(offered, options), identity=identity)


class _Locator:
    """From offsets in a decompressed stream, which only grow, to positions in the compressed file."""

    def __init__(self, source: Decompressed) -> None:
        self._source = source

    def __call__(self, offset: int) -> str:
        members = self._source.members
        while len(members) > 1 and members[1][0] <= offset:
            members.popleft()
        if not members:
            return "0"
        decompressed, compressed = members[0]
        return f"{compressed}+{offset - decompressed}" if offset > decompressed else str(compressed)


def _next_member(opened: BinaryIO, start: int) -> int | None:
    """The next place from which gzip gives the beginning of a WARC record."""
    (magic,) = MAGIC["gzip"]
    opened.seek(start)
    window = b""
    base = start
    while chunk := opened.read(BUFFER_BYTES):
        window += chunk
        at = window.find(magic)
        while at >= 0:
            try:
                beginning = zlib.decompressobj(31).decompress(window[at : at + 512], 5)
            except zlib.error:
                beginning = b""
            if beginning == b"WARC/":
                return base + at
            at = window.find(magic, at + 1)
        keep = min(len(window), 511)
        base += len(window) - keep
        window = window[-keep:]
    return None
