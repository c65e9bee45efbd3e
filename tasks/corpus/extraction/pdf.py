"""The text of a PDF."""

from __future__ import annotations

import io
import logging
import re
import time
import unicodedata
from collections import Counter

MAX_PAGES = 5000
MAX_SECONDS = 120.0
"""Of processor time for one document, looked at between pages."""

MAX_PAGE_CHARACTERS = 1_000_000
_EDGE_LINES = 2
_MIN_PAGES = 3
_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]$")
_NUMBER = re.compile(r"[0-9]{1,6}|\b[ivxlcdm]{1,8}\b")
_LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}


class UnreadablePdf(Exception):
    """A PDF without a text to be had; the message says why."""


def pdf_text(raw: bytes) -> str:
    """The text of all pages, a blank line between them.

    Lines at the top and bottom that repeat on most pages, whatever number is in them, are running headers
    and page numbers, and left out. Words that were divided at the end of a line are one
    again, ligatures are letters.

    Raises:
        UnreadablePdf: encrypted with a password, broken, without text (pictures of pages), or too large.
    """
    pages = _without_running_lines([_lines(page) for page in _pages(raw)])
    text = "\n\n".join(filter(None, ("\n".join(_with_whole_words(lines)).strip("\n") for lines in pages)))
    if not text.strip():
        raise UnreadablePdf("no text in it: its pages are pictures; they need OCR")
    return text


def _pages(raw: bytes) -> list[str]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it would log every flaw that it reads past
    started = time.process_time()
    try:
        reader = PdfReader(io.BytesIO(raw), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadablePdf("encrypted: it opens with a password only")
        count = len(reader.pages)
        if count > MAX_PAGES:
            raise UnreadablePdf(f"{count} pages; at most {MAX_PAGES} are read")
        pages: list[str] = []
        for number, page in enumerate(reader.pages, 1):
            if time.process_time() - started > MAX_SECONDS:
                raise UnreadablePdf(f"page {number} of {count} was not reached in {MAX_SECONDS:.0f} seconds")
            pages.append((page.extract_text() or "")[:MAX_PAGE_CHARACTERS])
    except UnreadablePdf:
        raise
    except DependencyError as error:
        raise UnreadablePdf(f"encrypted in a way that is not supported: {error}") from error
    except Exception as error:  # pypdf raises whatever a broken file leads it to, RecursionError too
        raise UnreadablePdf(f"broken: {type(error).__name__}: {error}") from error
    return pages


def _lines(page: str) -> list[str]:
    return [line.rstrip() for line in page.translate(_LIGATURES).splitlines()]


def _without_running_lines(pages: list[list[str]]) -> list[list[str]]:
    """Drop lines among the outer two of a page that more than half of the pages have, numbers aside."""
    if len(pages) < _MIN_PAGES:
        return pages
    seen = Counter(mark for lines in pages for mark in {_mark(lines[index]) for index in _edges(lines)})
    repeated = {mark for mark, count in seen.items() if count > len(pages) / 2}
    kept: list[list[str]] = []
    for lines in pages:
        dropped = {index for index in _edges(lines) if _mark(lines[index]) in repeated}
        kept.append([line for index, line in enumerate(lines) if index not in dropped])
    return kept


def _edges(lines: list[str]) -> set[int]:
    filled = [index for index, line in enumerate(lines) if line.strip()]
    return {*filled[:_EDGE_LINES], *filled[-_EDGE_LINES:]}


def _mark(line: str) -> str:
    return _NUMBER.sub("#", " ".join(line.split()).lower())


def _with_whole_words(lines: list[str]) -> list[str]:
    """Undo hyphenation at line ends, where the next line goes on in lower case."""
    whole: list[str] = []
    for line in lines:
        if whole and _HYPHENATED.search(whole[-1]) and line[:1].islower():
            head, _, rest = line.partition(" ")
            whole[-1] = whole[-1][:-1] + head
            if rest.strip():
                whole.append(rest)
        else:
            whole.append(line)
    return whole
