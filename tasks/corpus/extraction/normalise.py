"""One form for every text, whatever it comes from."""

from __future__ import annotations

import re
import unicodedata

from tasks.corpus.extraction.mojibake import mend_mojibake

_LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_OVERSTRIKE = re.compile(r"[^\n]\x08")
_TERMINAL_CODE = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|[()][A-B0-2])?")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\ufeff\ufffe\uffff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_CODE_BLANK_LINES = re.compile(r"\n{4,}")


def normalise(text: str) -> str:
    """Mojibake mended, NFC, one kind of line end, no control characters, at most one blank line in a row.

    No blanks stand at the ends of lines, no blank lines at the ends of the text. Soft hyphens go too. Half a
    surrogate pair becomes U+FFFD.
    """
    return _BLANK_LINES.sub("\n\n", _cleaned(mend_mojibake(_whole_characters(text)))).strip("\n")


def normalise_code(text: str) -> str:
    """The same for code: indentation and tabs stay, so do two blank lines; mojibake may be meant."""
    return _CODE_BLANK_LINES.sub("\n\n\n", _cleaned(_whole_characters(text))).strip("\n")


def _whole_characters(text: str) -> str:
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _cleaned(text: str) -> str:
    text = unicodedata.normalize("NFC", _LINE_END.sub("\n", text))
    if "\x08" in text:
        text = _OVERSTRIKE.sub("", text)
    if "\x1b" in text:
        text = _TERMINAL_CODE.sub("", text)
    text = _CONTROL.sub("", text)
    return _without_blanks_at_line_ends(text)


def _without_blanks_at_line_ends(text: str) -> str:
    return "\n".join(line.rstrip(" \t\xa0\u3000") for line in text.split("\n"))
