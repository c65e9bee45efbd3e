"""From one record of a foreign schema to ours."""

from __future__ import annotations

import json
from typing import Any

from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions, clean_unicode, kept_value

_MISSING = object()


def record_from_json(
    raw: bytes, position: str, offset: int, options: ReadOptions, bare_strings: bool = False
) -> RawRecord | Quarantined:
    """Parse a JSON object and take the columns asked for; ``offset`` is that of ``raw``, in bytes.

    With ``bare_strings`` a string is a record too, and is its text.
    """
    try:
        content: Any = json.loads(raw.decode(options.encoding or "utf-8"))
    except UnicodeDecodeError as error:
        return invalid_bytes(raw, position, offset, error)
    except json.JSONDecodeError as error:
        where = len(error.doc[: error.pos].encode(options.encoding or "utf-8", "surrogatepass"))
        return Quarantined(position, "invalid_json", f"byte {offset + where}: {error.msg}", raw)
    except ValueError as error:  # a number of thousands of digits
        return Quarantined(position, "invalid_json", f"byte {offset}: {error}", raw)
    except RecursionError:
        return Quarantined(position, "invalid_json", f"byte {offset}: nested too deep", raw)
    if bare_strings and isinstance(content, str):
        text, replaced = clean_unicode(content)
        return RawRecord(position, text, {}, replaced)
    if not isinstance(content, dict):
        detail = f"byte {offset}: a record is an object, not {type(content).__name__}"
        return Quarantined(position, "not_an_object", detail, raw)
    return record_from_object(content, position, offset, raw, options)


def record_from_object(
    content: dict[str, Any], position: str, offset: int, raw: bytes, options: ReadOptions
) -> RawRecord | Quarantined:
    """Take the columns asked for out of a parsed record."""
    value = lookup(content, options.text_field)
    if value is _MISSING:
        known = ", ".join(sorted(map(str, content)))[:200]
        detail = f"byte {offset}: no field `{options.text_field}`, only: {known}"
        return Quarantined(position, "no_text", detail, raw)
    if not isinstance(value, str):
        detail = f"byte {offset}: `{options.text_field}` must be a string, not {type(value).__name__}"
        return Quarantined(position, "text_not_string", detail, raw)
    text, replaced = clean_unicode(value)
    fields = kept_fields(content, options) if options.keep_fields else {}
    identity = kept_value(lookup(content, options.id_field)) if options.id_field else None
    return RawRecord(position, text, fields, replaced, None, identity)


def kept_fields(content: dict[str, Any], options: ReadOptions) -> dict[str, str]:
    """The fields to keep, under our names; those that are missing, null, lists or objects are left out."""
    values = ((new, kept_value(lookup(content, old))) for old, new in options.keep_fields.items())
    return {new: value for new, value in values if value is not None}


def lookup(content: dict[str, Any], name: str) -> Any:
    """The value under a name; where there is none and the name has dots, that in nested objects."""
    value = content.get(name, _MISSING)
    if value is _MISSING and "." in name:
        value = content
        for part in name.split("."):
            value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def invalid_bytes(raw: bytes, position: str, offset: int, error: UnicodeDecodeError) -> Quarantined:
    """A record with bytes that its encoding does not have."""
    rule = "invalid_utf8" if error.encoding.replace("_", "-") == "utf-8" else "undecodable"
    return Quarantined(position, rule, f"byte {offset + error.start}: {error.reason} ({error.encoding})", raw)


def too_long(
    position: str, offset: int, raw: bytes, options: ReadOptions, what: str = "record"
) -> Quarantined:
    """A record longer than the limit; ``raw`` is its beginning."""
    detail = f"byte {offset}: the {what} is longer than max_record_bytes = {options.max_record_bytes}"
    return Quarantined(position, "record_too_long", detail, raw[:200])
