"""From a document as its source has it to its text."""

from __future__ import annotations

import re
from collections.abc import Callable

from tasks.corpus.extraction.gutenberg import without_gutenberg_frame
from tasks.corpus.extraction.html import main_text
from tasks.corpus.extraction.markdown import markdown_text
from tasks.corpus.extraction.normalise import normalise, normalise_code
from tasks.corpus.extraction.roff import roff_text
from tasks.corpus.extraction.rst import rst_text

MARKUPS = ("plain", "html", "markdown", "rst", "roff", "code")

# White space of any width, and what has no width: a text of these alone shows nothing.
_SHOWN = re.compile(r"[^\s\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f]")

_CONVERTERS: dict[str, Callable[[str], str]] = {
    "html": main_text,
    "markdown": markdown_text,
    "rst": rst_text,
    "roff": roff_text,
}


def extract_text(raw: str, markup: str) -> str:
    """The text of a document, normalised; empty if there is none that shows.

    Markup comes to readable text with a blank line between paragraphs; what Project Gutenberg puts around its
    books goes. Code is only normalised. No content makes this raise.

    Raises:
        ValueError: if the markup is none of ``MARKUPS``.
    """
    if markup not in MARKUPS:
        raise ValueError(f"unknown markup {markup!r}; right would be one of {', '.join(MARKUPS)}")
    if markup == "code":
        text = normalise_code(raw)
    else:
        convert = _CONVERTERS.get(markup)
        text = without_gutenberg_frame(normalise(convert(raw) if convert else raw))
    return text if _SHOWN.search(text) else ""
