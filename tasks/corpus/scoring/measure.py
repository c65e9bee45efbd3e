"""All signals of text quality, in one compiled pass over a batch of documents.

Each document is decoded, and segmented into words, lines, sentences and paragraphs, once; every measure is
taken from those. After Rae et al. 2021 (Gopher, appendix A1.1), Raffel et al. 2020 (C4) and Penedo et al.
2024 (FineWeb), number for number as datatrove computes them from the same segments; docs/signals.md lists
what differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.scoring.c4 import (
    CURLY_BRACKET,
    KEPT,
    LINE_RULES,
    LOREM_IPSUM,
    LineFacts,
    phrases_in,
    rule_table,
    verdict,
    without_citations,
    words_and_longest,
)
from tasks.corpus.scoring.characters import TERMINAL, character_flags, lower_case
from tasks.corpus.scoring.hashing import HashTable, capacity_for, hash_of, hash_table, seen_before, slot_of
from tasks.corpus.scoring.lines import SHORT_LINE, count_lines, count_marks, trimmed
from tasks.corpus.scoring.repetition import (
    characters_before,
    extend_grams,
    lines_of,
    paragraphs_of,
    repeated_gram_characters,
    repeated_pieces,
    start_grams,
    top_gram_characters,
    without_empty,
)
from tasks.corpus.scoring.segments import (
    HAS_LETTER,
    IS_SYMBOL,
    IS_UNSEGMENTED,
    Segments,
    count_sentences,
    decode,
    room_for_segments,
    segment,
    text_buffers,
)
from tasks.corpus.scoring.stop_words import MOST_STOP_WORDS, stop_word_hashes

if TYPE_CHECKING:
    import pyarrow as pa

TOP_GRAMS, REPEATED_GRAMS = range(2, 5), range(5, 11)

SIGNALS = (
    "characters", "words", "segments", "lines", "sentences", "paragraphs",
    "mean_word_length", "hash_to_word_ratio", "ellipsis_to_word_ratio",
    "bullet_line_share", "ellipsis_line_share",
    "alphabetic_word_share", "unsegmented_word_share", "stop_words",
    "duplicate_paragraph_share", "duplicate_paragraph_character_share",
    "duplicate_line_share", "duplicate_line_character_share",
    *(f"top_{n}_gram_character_share" for n in TOP_GRAMS),
    *(f"duplicate_{n}_gram_character_share" for n in REPEATED_GRAMS),
    "terminal_line_share", "short_line_share", "repeated_line_character_share", "newline_to_word_ratio",
    *(f"{rule}_{what}" for rule in LINE_RULES for what in ("sentences", "lorem_ipsum", "curly_bracket")),
    *(f"c4_fineweb_{what}" for what in ("lines", "terminal_line_share", "short_line_share",
                                        "repeated_line_character_share", "newline_to_word_ratio")),
)  # fmt: skip
"""The names of the signals, in the order of the columns that `measure` returns."""

_QUALITY, _REPETITION = SIGNALS.index("mean_word_length"), SIGNALS.index("duplicate_paragraph_share")
_LINES, _C4 = SIGNALS.index("terminal_line_share"), SIGNALS.index("c4_tfds_sentences")
_EDITED = SIGNALS.index("c4_fineweb_lines")
_FINEWEB_RULE = list(LINE_RULES).index("c4_fineweb")


def measure(texts: pa.StringArray | pa.LargeStringArray, languages: Sequence[str | None]) -> np.ndarray:
    """The signals of D normalised texts: float64 of shape (D, len(SIGNALS)).

    ``languages`` (ISO 639) choose the stop words; where there are none for a language, ``stop_words`` is NaN.
    """
    data, offsets = text_buffers(texts)
    numbers, stop_hashes, stop_offsets = stop_word_hashes()
    language_D = np.array([numbers.get(language or "", -1) for language in languages], np.int64)
    signals_DS = np.zeros((len(texts), len(SIGNALS)))
    tables = Tables(character_flags(), lower_case(), stop_hashes, stop_offsets, rule_table())
    _measure_batch(data, offsets, language_D, tables, signals_DS)
    return signals_DS


class Tables(NamedTuple):
    """What the loops look up."""

    flags: np.ndarray
    lower: np.ndarray
    stop_hashes: np.ndarray
    stop_offsets: np.ndarray
    line_rules: np.ndarray


class Scratch(NamedTuple):
    """Room for one document at a time: its characters, a line, pieces (lines or paragraphs), segments,
    n-grams."""

    chars: np.ndarray
    line: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    segments: Segments
    reach: np.ndarray
    grams: np.ndarray
    table: HashTable


@compiled()
def _measure_batch(data, offsets, language_D, tables, signals_DS):
    longest = 1
    for d in range(len(language_D)):
        longest = max(longest, offsets[d + 1] - offsets[d])
    scratch = Scratch(
        np.empty(longest, np.int32), np.empty(longest, np.int32),
        np.empty(longest + 2, np.int64), np.empty(longest + 2, np.int64),
        room_for_segments(longest), np.empty(longest + 1, np.int64), np.empty(longest, np.uint64),
        hash_table(max(longest + 2, MOST_STOP_WORDS)),
    )  # fmt: skip
    stamp = 0
    for d in range(len(language_D)):
        count = decode(data, offsets[d], offsets[d + 1], scratch.chars)
        stamp = _measure(count, language_D[d], tables, scratch, stamp, signals_DS[d])


@compiled()
def _measure(count, language, tables, scratch, stamp, out):
    """Measure the ``count`` characters in ``scratch``; returns the last stamp used."""
    found, table = scratch.segments, scratch.table
    words = segment(scratch.chars, count, tables.flags, tables.lower, found)
    out[0], out[2], out[4] = count, words, count_sentences(found.kinds, words)
    _quality(out, found, words)
    marks, ellipses = count_marks(scratch.chars, count)
    out[_QUALITY + 1], out[_QUALITY + 2] = _share(marks, words), _share(ellipses, words)
    out[_QUALITY + 7] = _stop_words(found.folded, words, language, tables, table, stamp + 1)

    characters_before(found.lengths, words, scratch.reach)
    start_grams(found.exact, words, scratch.grams)
    stamp += 1
    for n in range(2, 11):
        places = extend_grams(scratch.grams, found.exact, words, n)
        stamp += 1
        if n < 5:
            repeated = top_gram_characters(scratch.grams, places, scratch.reach, n, table, stamp)
        else:
            repeated = repeated_gram_characters(scratch.grams, places, scratch.reach, n, table, stamp)
        out[_REPETITION + 2 + n] = _share(repeated, count)

    start, stop = trimmed(scratch.chars, 0, count, tables.flags)
    paragraphs = paragraphs_of(scratch.chars, start, stop, scratch.starts, scratch.stops)
    pieces, repeated = repeated_pieces(
        scratch.chars, scratch.starts, scratch.stops, paragraphs, table, stamp + 1
    )
    out[5] = paragraphs if count else 0
    out[_REPETITION], out[_REPETITION + 1] = _share(pieces, paragraphs), _share(repeated, count)

    lines = lines_of(scratch.chars, count, scratch.starts, scratch.stops)
    filled, bullets, ellipses, terminal, short, characters = count_lines(
        scratch.chars, scratch.starts, scratch.stops, lines, tables.flags
    )
    out[3] = filled
    out[_QUALITY + 3], out[_QUALITY + 4] = bullets / lines, ellipses / lines
    _pages(out, lines, tables, scratch, stamp + 2)
    nonempty = without_empty(scratch.starts, scratch.stops, lines)
    pieces, repeated = repeated_pieces(
        scratch.chars, scratch.starts, scratch.stops, nonempty, table, stamp + 3
    )
    out[_REPETITION + 2], out[_REPETITION + 3] = _share(pieces, nonempty), _share(repeated, count)
    out[_LINES], out[_LINES + 1] = _share(terminal, filled), _share(short, filled)
    out[_LINES + 2], out[_LINES + 3] = _share(repeated, characters), _share(lines - 1, words)
    return stamp + 3


@compiled(inline="always")
def _share(part, whole):
    return part / whole if whole else 0.0


@compiled()
def _quality(out, found, count):
    words, characters, letters, unsegmented = 0, 0, 0, 0
    for i in range(count):
        kind = found.kinds[i]
        if not kind & IS_SYMBOL:
            words += 1
            characters += found.lengths[i]
        letters += (kind & HAS_LETTER) != 0
        unsegmented += (kind & IS_UNSEGMENTED) != 0
    out[1] = words
    out[_QUALITY] = _share(characters, words)
    out[_QUALITY + 5] = _share(letters, count)
    out[_QUALITY + 6] = _share(unsegmented, words)


@compiled()
def _stop_words(folded, count, language, tables, table, stamp):
    """How many different stop words of the language occur."""
    if language < 0:
        return np.nan
    begin, end = tables.stop_offsets[language], tables.stop_offsets[language + 1]
    mask = capacity_for(end - begin) - 1
    for i in range(begin, end):
        table.counts[slot_of(tables.stop_hashes[i], table, stamp, mask)] = 0
        seen_before(tables.stop_hashes[i], table, stamp, mask)
    found = 0
    for i in range(count):
        slot = slot_of(folded[i], table, stamp, mask)
        if table.stamps[slot] == stamp and table.counts[slot] == 0:
            table.counts[slot] = 1
            found += 1
    return float(found)


@compiled()
def _line_facts(i, tables, scratch):
    """What rules ask of line ``i``, which stands in ``scratch.line`` afterwards, trimmed, without
    citations."""
    start, stop = trimmed(scratch.chars, scratch.starts[i], scratch.stops[i], tables.flags)
    words, longest = words_and_longest(scratch.chars, start, stop, tables.flags)
    length = without_citations(scratch.chars, start, stop, tables.flags, scratch.line)
    words_left = words
    if length < stop - start:
        words_left, _ = words_and_longest(scratch.line, 0, length, tables.flags)
    return LineFacts(length, words, words_left, longest, phrases_in(scratch.line, length, tables.lower))


@compiled()
def _last_line_left(lines, tables, scratch):
    """The last line with words that FineWeb's rule keeps; -1 if there is none."""
    for i in range(lines - 1, -1, -1):
        facts = _line_facts(i, tables, scratch)
        if facts.words_left and verdict(tables.line_rules[_FINEWEB_RULE], scratch.line, facts) == KEPT:
            return i
    return -1


@compiled()
def _pages(out, lines, tables, scratch, stamp):
    """C4's verdicts on the page by each rule, and FineWeb's measures of what FineWeb's rule leaves of it."""
    rules, line, found = tables.line_rules, scratch.line, scratch.segments
    sentences_kept, lorem, curly = np.zeros(len(rules)), np.zeros(len(rules)), np.zeros(len(rules))
    kept, filled, terminal, short, characters, repeated, words_kept, blanks = 0, 0, 0, 0, 0, 0, 0, 0
    first, last = 0, 0
    last_line = _last_line_left(lines, tables, scratch)
    mask = capacity_for(lines) - 1
    for i in range(lines):
        facts = _line_facts(i, tables, scratch)
        if facts.words == 0:
            continue
        segments, sentences = -1, 0
        for rule in range(len(rules)):
            said = verdict(rules[rule], line, facts)
            lorem[rule] += said == LOREM_IPSUM
            curly[rule] += said == CURLY_BRACKET
            if said != KEPT:
                continue
            if segments < 0:
                segments = segment(line, facts.length, tables.flags, tables.lower, found)
                sentences = count_sentences(found.kinds, segments)
            sentences_kept[rule] += sentences
            if rule == _FINEWEB_RULE:
                kept += 1
                words_kept += segments
                if facts.words_left == 0:
                    blanks += facts.length if first else 0
                    continue
                # What is left is trimmed as a whole: only its first line in front, only its last one behind.
                begin, end = trimmed(line, 0, facts.length, tables.flags)
                begin, end = 0 if first else begin, end if i == last_line else facts.length
                filled += 1
                first, last = first if first else kept, kept
                characters += end - begin + blanks
                blanks = 0
                terminal += (tables.flags[line[end - 1]] & TERMINAL) != 0
                short += end - begin <= SHORT_LINE
                if seen_before(hash_of(line, begin, end), scratch.table, stamp, mask):
                    repeated += end - begin
    for rule in range(len(rules)):
        out[_C4 + 3 * rule] = sentences_kept[rule]
        out[_C4 + 3 * rule + 1], out[_C4 + 3 * rule + 2] = lorem[rule], curly[rule]
    out[_EDITED] = filled
    out[_EDITED + 1], out[_EDITED + 2] = _share(terminal, filled), _share(short, filled)
    out[_EDITED + 3], out[_EDITED + 4] = _share(repeated, characters), _share(last - first, words_kept)
