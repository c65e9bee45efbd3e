"""From a document as its source has it to its text."""

from __future__ import annotations

import re
import unicodedata

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_LINE_END = re.compile(r"\r\n?|\u2028|\u2029|\x85")
_GUTENBERG_START = re.compile(r"^\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG.*$", re.MULTILINE)
_GUTENBERG_END = re.compile(r"^\*{3} ?END OF (?:THE|THIS) PROJECT GUTENBERG.*$", re.MULTILINE)


def extract_text(raw: str, markup: str) -> str:
    """The text of a document, normalised; empty if there is none.

    ``html``: the main text without navigation, by trafilatura. ``plain``: all of it, without the licence
    blurbs that Project Gutenberg puts around its books.
    """
    text = _main_text(raw) if markup == "html" else _without_gutenberg_frame(raw)
    return normalise(text)


def normalise(text: str) -> str:
    """NFC, one kind of line end, no control characters, no space at line ends, at most one blank line."""
    text = unicodedata.normalize("NFC", _LINE_END.sub("\n", text))
    text = _CONTROL.sub("", text)
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _main_text(html: str) -> str:
    import trafilatura

    # A declaration of the encoding speaks of bytes that are decoded by now; lxml refuses text that has one.
    html = re.sub(r"^\s*<\?xml[^>]*\?>", "", html)
    if not html.strip():
        return ""
    return trafilatura.extract(html, include_comments=False, include_tables=True, deduplicate=False) or ""


def _without_gutenberg_frame(text: str) -> str:
    start = _GUTENBERG_START.search(text)
    end = _GUTENBERG_END.search(text)
    return text[start.end() if start else 0 : end.start() if end else len(text)]
