"""The words around a value: what tells a telephone number from a part number."""

from __future__ import annotations

import re
from collections.abc import Iterator

GAP = "\0"
"""Stands for each character of a placeholder or of a value that was found: no detector looks across it."""

EDGE = r"0-9A-Za-z_\x00"
"""For character classes: what a value may not touch. Letters of other scripts may touch it
(电话13812345678)."""


def words(*alternatives: str) -> re.Pattern[str]:
    """A pattern for any of these words, each given as a regular expression in lower case.

    A word of letters begins at no other letter (``tel`` is not in *hotel*); what must follow it, it says
    itself.
    """
    return re.compile(rf"(?<![^\W\d_])(?:{'|'.join(alternatives)})")


def stands_near(cues: re.Pattern[str], text: str, start: int, end: int, before: int, after: int = 0) -> bool:
    """Whether a word of ``cues`` is within so many characters before or after a value, and on this side of a
    gap."""
    return bool(
        cues.search(preceding(text, start, before).lower())
        or (after and cues.search(following(text, end, after).lower()))
    )


def preceding(text: str, start: int, width: int) -> str:
    """The characters before a position, back to a gap."""
    window = text[max(0, start - width) : start]
    return window[window.rfind(GAP) + 1 :]


def following(text: str, end: int, width: int) -> str:
    """The characters after a position, up to a gap."""
    return text[end : end + width].partition(GAP)[0]


def positions(text: str, literal: str) -> Iterator[int]:
    """Where a literal stands."""
    position = text.find(literal)
    while position >= 0:
        yield position
        position = text.find(literal, position + 1)
