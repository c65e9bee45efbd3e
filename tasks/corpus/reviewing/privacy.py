"""Texts that may be shown: without personal data, and no longer than a person reads."""

from __future__ import annotations

import re

from tasks.corpus.pii.find import Found, find_personal_data
from tasks.corpus.pii.mask import mask

MARGIN = 16_384
"""Characters beyond what is shown that are searched too: a find that the cut divides is found whole."""


def shown(text: str, limit: int, key: bytes = b"") -> str:
    """The text with personal data masked; of one longer than ``limit`` head and tail, with a mark between.

    Only what is shown, and a margin around it, is searched: the time does not grow with the document.
    """
    if len(text) <= limit:
        return mask(text, find_personal_data(text), key)
    tail = limit // 3
    head = limit - tail
    start, end = text[: head + MARGIN], text[-(tail + MARGIN) :]
    left, found_left = _upto(find_personal_data(start), head)
    right, found_right = _from(find_personal_data(end), len(end) - tail)
    omitted = len(text) - left - (len(end) - right)
    moved = [Found(each.kind, each.start - right, each.end - right) for each in found_right]
    return (
        mask(start[:left], found_left, key)
        + f"\n\n[… {omitted:,} characters are left out …]\n\n"
        + mask(end[right:], moved, key)
    )


def veiled(text: str) -> str:
    """The text with the letters and digits of personal data replaced by ``x``, ``X`` and ``9``.

    The length stays, and one sees whether something has the form of a telephone number or of a version.
    """
    pieces, position = [], 0
    for each in find_personal_data(text):
        hidden = _LETTER.sub(lambda letter: "X" if letter[0].isupper() else "x", text[each.start : each.end])
        pieces += (text[position : each.start], re.sub(r"\d", "9", hidden))
        position = each.end
    return "".join([*pieces, text[position:]])


def _upto(found: list[Found], cut: int) -> tuple[int, list[Found]]:
    """Where to cut at ``cut`` or before, so that no find is divided, and the finds before it."""
    divided = [each for each in found if each.start < cut < each.end]
    cut = divided[0].start if divided else cut
    return cut, [each for each in found if each.end <= cut]


def _from(found: list[Found], cut: int) -> tuple[int, list[Found]]:
    """Where to cut at ``cut`` or after it, so that no find is divided, and the finds behind it."""
    divided = [each for each in found if each.start < cut < each.end]
    cut = divided[0].end if divided else cut
    return cut, [each for each in found if each.start >= cut]


_LETTER = re.compile(r"[^\W\d_]")
