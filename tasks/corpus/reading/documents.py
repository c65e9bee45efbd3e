"""Formats of one document a file."""

from __future__ import annotations

import io
from collections.abc import Iterator

from tasks.corpus.reading.formats import DOCUMENT_FORMATS
from tasks.corpus.reading.mapping import too_long
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions, clean_unicode
from tasks.corpus.reading.streams import BUFFER_BYTES


def read_document(
    stream: io.BufferedReader, format: str, options: ReadOptions
) -> Iterator[RawRecord | Quarantined]:
    """The file as one document."""
    held = io.BytesIO()
    while held.tell() <= options.max_record_bytes and (piece := stream.read1(BUFFER_BYTES)):
        held.write(piece)
    raw = held.getvalue()
    if len(raw) > options.max_record_bytes:
        yield too_long("", 0, raw, options, "file")
    elif format == "pdf":
        yield _pdf(raw)
    else:
        yield text_document(raw, "", options.encoding, DOCUMENT_FORMATS[format])


def text_document(raw: bytes, position: str, declared: str | None, markup: str) -> RawRecord | Quarantined:
    """Bytes in any encoding as a document; ``declared`` is the encoding that somebody said they have."""
    from tasks.corpus.extraction.charset import UndecodableText, decode_bytes

    try:
        decoded = decode_bytes(raw, declared, markup)
    except UndecodableText as error:
        return Quarantined(position, "not_text", f"byte {error.offset}: {error.reason}", raw[:200])
    text, replaced = clean_unicode(decoded.text)
    return RawRecord(position, text, {}, decoded.replaced + replaced, markup)


def _pdf(raw: bytes) -> RawRecord | Quarantined:
    from tasks.corpus.extraction.pdf import UnreadablePdf, pdf_text

    try:
        text, replaced = clean_unicode(pdf_text(raw))
    except UnreadablePdf as error:
        return Quarantined("", "unreadable_pdf", f"byte 0: {error}", raw)
    return RawRecord("", text, {}, replaced, DOCUMENT_FORMATS["pdf"])
