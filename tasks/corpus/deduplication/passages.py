"""Lines and paragraphs of texts as hashes: equal for those that differ in case, width and white space only.

So it is with documents that are exact duplicates (see `tasks.records.content_hash`). A paragraph is what
stands between blank lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.scoring.characters import SPACE, character_flags
from tasks.corpus.scoring.hashing import START, extended
from tasks.corpus.scoring.segments import decode, text_buffers

LINE, PARAGRAPH = 0, 1

_SPACE, _NEWLINE = 32, 10


@dataclass(frozen=True)
class Passages:
    """The P passages of D texts, back to back, in the order of their ends."""

    hashes_P: np.ndarray
    """uint64; a line and a paragraph of the same words have different ones"""
    kinds_P: np.ndarray
    """uint8: `LINE` or `PARAGRAPH`"""
    first_P: np.ndarray
    """int64: number of its first line in the text, whose lines end in a newline"""
    last_P: np.ndarray
    """int64: number of its last line"""
    characters_P: np.ndarray
    """int64: of its normal form"""
    offsets_D1: np.ndarray
    """int64: the passages of text d are from ``offsets_D1[d]`` to ``offsets_D1[d + 1]``"""


def passages(texts: Sequence[str], *, lines: bool, paragraphs: bool) -> Passages:
    """The lines, the paragraphs, or both, of every text; blank lines are none."""
    import pyarrow as pa

    # Neither step makes or takes a newline, so that lines keep their numbers.
    normal = [
        text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold() for text in texts
    ]
    data, offsets = text_buffers(pa.array(normal, pa.large_string()))
    return Passages(*_passages(data, offsets, character_flags(), lines, paragraphs))


@compiled()
def _passages(data, offsets, flags, lines, paragraphs):
    documents = len(offsets) - 1
    longest, most = 0, 0
    for d in range(documents):
        longest = max(longest, offsets[d + 1] - offsets[d])
        most += 2
        for i in range(offsets[d], offsets[d + 1]):
            most += 2 * (data[i] == _NEWLINE)
    chars = np.empty(longest, np.int32)
    hashes_P, kinds_P = np.empty(most, np.uint64), np.empty(most, np.uint8)
    first_P, last_P, characters_P = (
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    bounds = np.zeros(documents + 1, np.int64)
    total = 0
    for d in range(documents):
        count = decode(data, offsets[d], offsets[d + 1], chars)
        number, begin = 0, 0
        first = -1
        of_paragraph, in_paragraph = START, 0
        while begin <= count:
            of_line, in_line = START, 0
            blank = False  # whether white space was passed since the last word of the line
            i = begin
            while i < count and chars[i] != _NEWLINE:
                char = chars[i]
                i += 1
                if flags[char] & SPACE:
                    blank = True
                    continue
                if in_line and blank:
                    of_line, in_line = extended(of_line, np.uint64(_SPACE)), in_line + 1
                if in_paragraph and (blank or not in_line):
                    of_paragraph, in_paragraph = extended(of_paragraph, np.uint64(_SPACE)), in_paragraph + 1
                of_line, in_line = extended(of_line, np.uint64(char)), in_line + 1
                of_paragraph, in_paragraph = extended(of_paragraph, np.uint64(char)), in_paragraph + 1
                blank = False
            if in_line:
                first = number if first < 0 else first
                if lines:
                    hashes_P[total], kinds_P[total], characters_P[total] = of_line, LINE, in_line
                    first_P[total], last_P[total] = number, number
                    total += 1
            if paragraphs and in_paragraph and (in_line == 0 or i >= count):
                hashes_P[total] = extended(of_paragraph, np.uint64(_NEWLINE))
                kinds_P[total], characters_P[total] = PARAGRAPH, in_paragraph
                first_P[total], last_P[total] = first, number - (in_line == 0)
                total += 1
            if in_line == 0:
                first = -1
                of_paragraph, in_paragraph = START, 0
            number += 1
            begin = i + 1
        bounds[d + 1] = total
    return (
        hashes_P[:total].copy(), kinds_P[:total].copy(), first_P[:total].copy(), last_P[:total].copy(),
        characters_P[:total].copy(), bounds,
    )  # fmt: skip
