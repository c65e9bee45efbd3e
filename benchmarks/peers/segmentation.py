"""Gristmill's segmentation once more, in plain Python: what the peers' rules are given to compare rule with
rule.

It imports nothing of the project, so that it runs in a peer's environment; a test holds it against the
compiled one.
"""

from __future__ import annotations

import functools
import re
import unicodedata

_UNSEGMENTED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)


@functools.lru_cache(16)
def words(text: str) -> list[str]:
    """The segments of a text: words, and runs of one symbol."""
    found = []
    i = 0
    while i < len(text):
        start = i
        i += 1
        if text[start].isspace():
            continue
        if _word(text[start]):
            if not _unsegmented(text[start]):
                while i < len(text) and (
                    (_word(text[i]) and not _unsegmented(text[i])) or (i + 1 < len(text) and _joins(text, i))
                ):
                    i += 1
        else:
            while i < len(text) and text[i] == text[start]:
                i += 1
        found.append(text[start:i])
    return found


def sentences(text: str, terminal: frozenset[str]) -> list[str]:
    """The sentences of a text, as joined segments: one ends behind a mark and the symbols that follow it."""
    found: list[list[str]] = []
    ended = True
    for segment in words(text):
        is_word = any(map(_word, segment))
        if not found or (ended and is_word):
            found.append([])
            ended = False
        found[-1].append(segment)
        if len(segment) == 1 and segment in terminal:
            ended = True
    return [" ".join(segments) for segments in found]


def _word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] in "LM"


def _unsegmented(character: str) -> bool:
    return bool(_UNSEGMENTED.match(character)) and _word(character)


def _joins(text: str, i: int) -> bool:
    before, after = text[i - 1], text[i + 1]
    if _unsegmented(after):
        return False
    if text[i] in "'’":
        return before.isalpha() and after.isalpha()
    if text[i] in ".,":
        if unicodedata.category(before) == unicodedata.category(after) == "Nd":
            return True
        if text[i] == "." and before.isalpha() and after.isalpha():
            return before.lower() != before or after.lower() == after
    return False
