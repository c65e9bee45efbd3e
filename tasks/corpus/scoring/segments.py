"""Words, segmented once for a whole batch of documents, in compiled loops over Arrow's buffers.

A word is a run of letters, digits, marks and ``_``, joined across an apostrophe between letters, a full stop
between letters (``e.g``, ``example.org``, but not ``end.Next``) and a full stop or comma between digits. In a
script without spaces each character is a word. A run of one symbol (``...``, ``--``, ``(``) is a segment
too, but no word. That is near to spaCy's rules, by which datatrove segments, without its lists of
exceptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.scoring.characters import (
    ALPHABETIC,
    DIGIT,
    SPACE,
    SYMBOL,
    TERMINAL,
    UNSEGMENTED,
    WORD,
    character_flags,
    lower_case,
)
from tasks.corpus.scoring.hashing import START, appended, mixed

if TYPE_CHECKING:
    import pyarrow as pa

HAS_LETTER, IS_SYMBOL, HAS_WORD, ENDS_SENTENCE, IS_UNSEGMENTED = (1 << bit for bit in range(5))
"""What a segment is: has a letter; is made of symbols alone; has a character of words; is a single mark that
ends a sentence; is a character of a script without spaces."""

_APOSTROPHE, _RIGHT_QUOTE, _FULL_STOP, _COMMA, _NEWLINE = 39, 0x2019, 46, 44, 10


class Segments(NamedTuple):
    """Room for the segments of a text, filled by `segment`."""

    starts: np.ndarray
    lengths: np.ndarray
    kinds: np.ndarray
    """what each is: the flags above"""
    exact: np.ndarray
    """its hash as written"""
    folded: np.ndarray
    """its hash in lower case"""


@dataclass(frozen=True)
class Words:
    """The words (no symbols) of D documents, back to back."""

    hashes_W: np.ndarray
    """uint64: a hash of the word in lower case"""
    starts_W: np.ndarray
    """int64: where it starts, in bytes of its document's UTF-8"""
    ends_W: np.ndarray
    offsets_D1: np.ndarray
    """int64: the words of document d are those from ``offsets_D1[d]`` to ``offsets_D1[d + 1]``"""


def segment_words(texts: pa.StringArray | pa.LargeStringArray, *, places: bool = True) -> Words:
    """The words of every text; a null is a text without words.

    Without ``places`` a quarter of the time is saved, and ``starts_W`` and ``ends_W`` are empty.
    """
    data, offsets = text_buffers(texts)
    hashes, starts, ends, counts = _words_of_batch(data, offsets, character_flags(), lower_case(), places)
    return Words(hashes, starts, ends, np.concatenate([[0], np.cumsum(counts)]))


def text_buffers(texts: pa.StringArray | pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 of all texts (uint8) and where each begins and ends in it (int64, one more than texts)."""
    import pyarrow as pa

    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None:
        return np.zeros(0, np.uint8), np.zeros(len(texts) + 1, np.int64)
    bounds = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), bounds


def word_hash(word: str) -> np.uint64:
    """The hash by which a word is known in `Words`."""
    import pyarrow as pa

    (hashed,) = segment_words(pa.array([word])).hashes_W
    return hashed


@compiled()
def decode(data, start, stop, chars):
    """Decode ``data[start:stop]``, valid UTF-8, into code points; returns their number."""
    count = 0
    i = start
    while i < stop:
        byte = np.int32(data[i])
        if byte < 0x80:
            chars[count] = byte
            i += 1
        elif byte < 0xE0:
            chars[count] = (byte & 0x1F) << 6 | (data[i + 1] & 0x3F)
            i += 2
        elif byte < 0xF0:
            chars[count] = (byte & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)
            i += 3
        else:
            chars[count] = (
                (byte & 0x07) << 18
                | (data[i + 1] & 0x3F) << 12
                | (data[i + 2] & 0x3F) << 6
                | (data[i + 3] & 0x3F)
            )
            i += 4
        count += 1
    return count


@compiled()
def segment(chars, stop, flags, lower, into):
    """Segment ``chars[:stop]``; returns the number of segments."""
    count = 0
    i = 0
    while i < stop:
        first = chars[i]
        flag = flags[first]
        if flag & SPACE:
            i += 1
            continue
        begin = i
        hashed = appended(START, np.uint64(first))
        low = appended(START, np.uint64(lower[first]))
        symbols = flag & SYMBOL
        letters = flag & ALPHABETIC
        kind = 0
        i += 1
        if flag & UNSEGMENTED:
            kind = HAS_WORD | IS_UNSEGMENTED
        elif flag & WORD:
            kind = HAS_WORD
            while i < stop:
                char = chars[i]
                flag = flags[char]
                # Most words end at a space, which joins nothing: the rest need not be looked at.
                if (flag & (WORD | UNSEGMENTED)) != WORD and (
                    flag & SPACE or i + 1 >= stop or not _joins(chars, i, flags, lower)
                ):
                    break
                symbols &= flag
                letters |= flag & ALPHABETIC
                hashed = appended(hashed, np.uint64(char))
                low = appended(low, np.uint64(lower[char]))
                i += 1
        else:
            while i < stop and chars[i] == first:
                hashed = appended(hashed, np.uint64(first))
                low = appended(low, np.uint64(lower[first]))
                i += 1
            if flag & TERMINAL and i == begin + 1:
                kind |= ENDS_SENTENCE
        if symbols & SYMBOL:
            kind |= IS_SYMBOL
        if letters:
            kind |= HAS_LETTER
        into.starts[count] = begin
        into.lengths[count] = i - begin
        into.kinds[count] = kind
        into.exact[count] = mixed(hashed)
        into.folded[count] = mixed(low)
        count += 1
    return count


@compiled(inline="always")
def _joins(chars, i, flags, lower):
    """Whether the character at ``i`` joins those around it to one word."""
    char, before, after = chars[i], chars[i - 1], chars[i + 1]
    if flags[after] & UNSEGMENTED:
        return False
    if char in (_APOSTROPHE, _RIGHT_QUOTE):
        return (flags[before] & ALPHABETIC) != 0 and (flags[after] & ALPHABETIC) != 0
    if char in (_FULL_STOP, _COMMA):
        if flags[before] & DIGIT and flags[after] & DIGIT:
            return True
        if char == _FULL_STOP and flags[before] & ALPHABETIC and flags[after] & ALPHABETIC:
            return lower[before] != before or lower[after] == after
    return False


@compiled()
def room_for_segments(characters):
    """Room for the segments of a text of so many characters."""
    return Segments(
        np.empty(characters, np.int64), np.empty(characters, np.int64), np.empty(characters, np.uint8),
        np.empty(characters, np.uint64), np.empty(characters, np.uint64),
    )  # fmt: skip


@compiled()
def count_sentences(kinds, count):
    """Sentences among the first ``count`` segments.

    A sentence ends behind a mark such as ``.`` and whatever symbols follow it: a new one begins with a word.
    """
    sentences = 1 if count else 0
    ended = False
    for i in range(count):
        if kinds[i] & ENDS_SENTENCE:
            ended = True
        elif ended and kinds[i] & HAS_WORD:
            sentences += 1
            ended = False
    return sentences


@compiled()
def _words_of_batch(data, offsets, flags, lower, places):
    documents = len(offsets) - 1
    longest = 0
    for d in range(documents):
        longest = max(longest, offsets[d + 1] - offsets[d])
    chars = np.empty(longest, np.int32)
    found = room_for_segments(longest)
    counts = np.zeros(documents, np.int64)
    total = 0
    capacity = max(16, (offsets[documents] - offsets[0]) // 4)
    hashes, begins, ends = (
        np.empty(capacity, np.uint64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
    )
    for d in range(documents):
        n = decode(data, offsets[d], offsets[d + 1], chars)
        count = segment(chars, n, flags, lower, found)
        if total + count > capacity:
            capacity = 2 * (total + count)
            hashes, begins, ends = _grown(hashes, capacity), _grown(begins, capacity), _grown(ends, capacity)
        char, byte = 0, 0
        for w in range(count):
            if not found.kinds[w] & HAS_WORD:
                continue
            hashes[total] = found.folded[w]
            total += 1
            counts[d] += 1
            if not places:
                continue
            while char < found.starts[w]:
                byte += _width(chars[char])
                char += 1
            begins[total - 1] = byte
            while char < found.starts[w] + found.lengths[w]:
                byte += _width(chars[char])
                char += 1
            ends[total - 1] = byte
    placed = total if places else 0
    return hashes[:total].copy(), begins[:placed].copy(), ends[:placed].copy(), counts


@compiled(inline="always")
def _width(char):
    return 1 if char < 0x80 else 2 if char < 0x800 else 3 if char < 0x10000 else 4


@compiled()
def _grown(array, capacity):
    larger = np.empty(capacity, array.dtype)
    larger[: len(array)] = array
    return larger
