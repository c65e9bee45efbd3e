"""Files in, raw records out, one at a time; what cannot be read is quarantined with its place and the reason.

Sources come from outside: any byte may be wrong. A reader never raises for what a file holds; it yields
`Quarantined` and goes on with the next record.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BufferedIOBase
from pathlib import Path
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class RawRecord:
    """A document as its source has it."""

    position: str
    text: str
    fields: dict[str, str] = field(default_factory=dict)
    replaced_characters: int = 0


@dataclass(frozen=True)
class Quarantined:
    """A record that cannot be read: where it stands, the reason, and what could be seen of it."""

    position: str
    rule: str
    detail: str
    raw: bytes = b""


def read_json_lines(
    path: Path, text_field: str, kept_fields: dict[str, str], max_record_bytes: int
) -> Iterator[RawRecord | Quarantined]:
    """Read a JSON Lines file, gzipped or not; a blank line is no record, a BOM before the first is no fault.

    ``kept_fields`` maps names of string fields to the names they get in the record. The position of a record
    is its line number.
    """
    offset = 0
    number = 0
    try:
        with _opened(path) as lines:
            while True:
                line = lines.readline(max_record_bytes + 1)
                if not line:
                    return
                number += 1
                start = offset
                offset += len(line)
                if len(line) > max_record_bytes and not line.endswith(b"\n"):
                    offset += _skip_line(lines)
                    detail = f"byte {start}: the line is longer than max_record_bytes = {max_record_bytes}"
                    yield Quarantined(str(number), "record_too_long", detail, line[:200])
                    continue
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield _record(line, str(number), start, text_field, kept_fields)
    except (EOFError, OSError, zlib.error) as error:
        yield Quarantined(
            f"{number + 1}", "source_broken", f"byte {offset}: {error}; the rest cannot be read"
        )


def read_whole_file(path: Path, max_record_bytes: int) -> Iterator[RawRecord | Quarantined]:
    """Read a file, gzipped or not, as one document in UTF-8."""
    try:
        with _opened(path) as content:
            raw = content.read(max_record_bytes + 1)
    except (EOFError, OSError, zlib.error) as error:
        yield Quarantined("0", "source_broken", str(error))
        return
    if len(raw) > max_record_bytes:
        detail = f"the file is longer than max_record_bytes = {max_record_bytes}"
        yield Quarantined("0", "record_too_long", detail, raw[:200])
        return
    try:
        text, replaced = _clean_unicode(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        yield Quarantined("0", "invalid_utf8", f"byte {error.start}: {error.reason}", raw)
        return
    yield RawRecord("0", text, replaced_characters=replaced)


def _record(
    line: bytes, position: str, offset: int, text_field: str, kept_fields: dict[str, str]
) -> RawRecord | Quarantined:
    try:
        content: Any = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Quarantined(position, "invalid_utf8", f"byte {offset + error.start}: {error.reason}", line)
    except ValueError as error:
        return Quarantined(position, "invalid_json", f"byte {offset}: {error}", line)
    except RecursionError:
        return Quarantined(position, "invalid_json", f"byte {offset}: nested too deep", line)
    if not isinstance(content, dict):
        kind = type(content).__name__
        return Quarantined(
            position, "not_an_object", f"byte {offset}: a record is an object, not {kind}", line
        )
    if text_field not in content:
        known = ", ".join(sorted(map(str, content)))[:200]
        return Quarantined(
            position, "no_text", f"byte {offset}: no field `{text_field}`, only: {known}", line
        )
    value = content[text_field]
    if not isinstance(value, str):
        detail = f"byte {offset}: `{text_field}` must be a string, not {type(value).__name__}"
        return Quarantined(position, "text_not_string", detail, line)
    text, replaced = _clean_unicode(value)
    fields = {
        new: _clean_unicode(str(content[old]))[0]
        for old, new in kept_fields.items()
        if isinstance(content.get(old), str | int | float)
    }
    return RawRecord(position, text, fields, replaced)


def _clean_unicode(text: str) -> tuple[str, int]:
    """Replace what Arrow and Parquet cannot hold, lone surrogates, and NUL; count the replacements."""
    return re.subn("[\ud800-\udfff\0]", REPLACEMENT, text)


def _opened(path: Path) -> BufferedIOBase:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _skip_line(lines: BufferedIOBase) -> int:
    skipped = 0
    while chunk := lines.readline(2**20):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            break
    return skipped
