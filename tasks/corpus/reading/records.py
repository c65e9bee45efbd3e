"""What reading a file gives, and what it may be told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class RawRecord:
    """A document as its file has it.

    ``position`` is where it begins: a byte offset in the decompressed file (JSON Lines, lines, JSON, CSV; in
    UTF-16 and UTF-32 that of the same text in UTF-8), the offset in the file as it lies there (WARC), the row
    counted from 0 (Parquet), "0" for a file that is one document; inside an archive ``member!position``, or
    the member alone.
    """

    position: str
    text: str
    fields: dict[str, str] = field(default_factory=dict)
    replaced_characters: int = 0
    markup: str | None = None
    identity: str | None = None


@dataclass(frozen=True)
class Quarantined:
    """A record that cannot be read: where it stands, the reason with its byte offset, what could be seen."""

    position: str
    rule: str
    detail: str
    raw: bytes = b""


@dataclass(frozen=True)
class ReadOptions:
    """How files are read.

    ``format`` is "auto" or one of `tasks.corpus.reading.formats.FORMATS`. ``text_field``, ``id_field`` and
    the keys of ``keep_fields`` (theirs -> ours) name columns; ``a.b`` reaches into nested objects. ``files``
    is a glob over the paths of an archive's members. An archive may hold ``max_members`` members, each at
    most ``max_member_bytes`` long, and nothing may unpack to more than ``max_ratio`` times its bytes (64 MiB
    are always granted).
    """

    format: str = "auto"
    text_field: str = "text"
    id_field: str | None = None
    keep_fields: Mapping[str, str] = field(default_factory=dict)
    max_record_bytes: int = 64 * 2**20
    encoding: str | None = None
    delimiter: str | None = None
    files: str = "*"
    max_members: int = 1_000_000
    max_member_bytes: int = 2**32
    max_ratio: float = 200.0


@dataclass(frozen=True)
class Span:
    """A part of a file, ``stop`` excluded: bytes, or row groups of Parquet."""

    start: int
    stop: int


def clean_unicode(text: str) -> tuple[str, int]:
    """Replace what Arrow and Parquet cannot hold, lone surrogates, and NUL; count the replacements."""
    if "\0" not in text:
        if text.isascii():
            return text, 0
        try:
            text.encode()  # much quicker than looking for surrogates, and nearly always enough
            return text, 0
        except UnicodeEncodeError:
            pass
    return re.subn("[\ud800-\udfff\0]", REPLACEMENT, text)


def kept_value(value: Any) -> str | None:
    """A column's value as a field of a record; None for what is no single value."""
    if isinstance(value, str):
        return clean_unicode(value)[0]
    return str(value) if isinstance(value, int | float | Decimal | date) else None
