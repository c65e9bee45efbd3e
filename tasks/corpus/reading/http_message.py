"""A page out of a captured HTTP message (RFC 9112): status, encodings, character set."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

from tasks.corpus.reading.compression import Decompressed, compression_of
from tasks.corpus.reading.formats import HEAD_BYTES, why_not_text
from tasks.corpus.reading.records import ReadOptions
from tasks.corpus.reading.streams import SourceBroken, buffered

MARKUP_OF_TYPE = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/plain": "plain",
    "text/markdown": "markdown",
    "text/x-rst": "rst",
    "text/troff": "roff",
}
_CHARSET = re.compile(r"charset\s{0,8}=\s{0,8}[\"']?([\w.:+-]{1,40})", re.ASCII | re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/\d[.\d]{0,3}\s{1,8}(\d{3})\b")


@dataclass(frozen=True)
class Page:
    """The bytes of a page, the encoding that was declared for them, and their markup."""

    body: bytes
    charset: str | None
    markup: str
    content_type: str


@dataclass(frozen=True)
class NoPage:
    """Why a message holds no page."""

    rule: str
    reason: str


def http_page(message: bytes, options: ReadOptions) -> Page | NoPage:
    """The page in a response as it went over the wire."""
    from warcio.bufferedreaders import ChunkedDataReader
    from warcio.statusandheaders import StatusAndHeadersParser

    status = _STATUS.match(message)
    if status is None:
        return NoPage("invalid_warc", "the block is no HTTP response")
    if status[1] != b"200":
        return NoPage("http_status", f"HTTP status {status[1].decode()}")
    stream = io.BytesIO(message)
    headers = StatusAndHeadersParser([], verify=False).parse(stream)
    body = stream.read()
    if "chunked" in (headers.get_header("Transfer-Encoding") or "").lower():
        body = ChunkedDataReader(io.BytesIO(body)).read()
    try:
        for coding in reversed((headers.get_header("Content-Encoding") or "").lower().split(",")):
            body = _decoded(body, coding.strip(), options)
    except SourceBroken as fault:
        return NoPage(fault.rule, f"the body cannot be decoded: {fault.reason}")
    return typed_page(body, headers.get_header("Content-Type") or "")


def typed_page(body: bytes, content_type: str) -> Page | NoPage:
    """A page of a type that was declared; of no type at all if it looks like text."""
    kind = content_type.partition(";")[0].strip().lower()
    markup = MARKUP_OF_TYPE.get(kind)
    if not kind:
        reason = why_not_text(body[:HEAD_BYTES])
        if reason:
            return NoPage("not_text", f"no content type, and not text but {reason}")
        markup = "html" if body.lstrip()[:1] == b"<" else "plain"
    if markup is None:
        return NoPage("not_text", f"content type {kind[:100]}")
    charset = _CHARSET.search(content_type)
    return Page(body, charset[1] if charset else None, markup, kind)


def _decoded(body: bytes, coding: str, options: ReadOptions) -> bytes:
    """Undo one content coding. Crawlers often store a body decoded and leave the header as it was."""
    if coding in ("", "identity"):
        return body
    if coding in ("gzip", "x-gzip", "zstd"):
        if compression_of(body) is None:
            return body
        return _unpacked(body, "zstd" if coding == "zstd" else "gzip", options)
    if why_not_text(body[:HEAD_BYTES]) is None and _is_utf8(body):
        return body
    if coding == "deflate":
        # RFC 9110 means zlib's format by it; some servers send the bare stream
        zlib_header = body[:1] == b"\x78" and int.from_bytes(body[:2], "big") % 31 == 0
        return _unpacked(body, "zlib" if zlib_header else "deflate", options)
    raise SourceBroken(0, f"content coding {coding[:40]!r} is not known", "unknown_compression")


def _unpacked(body: bytes, compression: str, options: ReadOptions) -> bytes:
    limit = options.max_record_bytes
    unpacked = buffered(Decompressed(io.BytesIO(body), compression, options.max_ratio)).read(limit + 1)
    if len(unpacked) > limit:
        raise SourceBroken(0, f"longer than max_record_bytes = {limit}", "record_too_long")
    return unpacked


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
