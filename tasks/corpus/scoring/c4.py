"""The rules of C4 for lines and pages, in compiled loops (Raffel et al. 2020; the code is TFDS's c4_utils).

There are three readings of them, which differ in what a line must have. Two facts are common to all: what
stands of a line is judged without its citations (``[3]``, ``[edit]``), and lines with a word of more than
1000 characters, with "javascript" or a phrase of cookie notices are dropped; a page with "lorem ipsum" or
``{`` in a line that is not dropped before is dropped whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.scoring.characters import DIGIT, SPACE, character_flags, lower_case
from tasks.corpus.scoring.lines import trimmed


@dataclass(frozen=True)
class LineRule:
    """What a line needs to be kept."""

    minimum_words: int
    words_without_citations: bool
    """whether citations are taken out before words are counted"""
    end_marks: str
    """one of these ends the line, and no ``...``; empty: no matter what ends it"""


class LineFacts(NamedTuple):
    """What rules ask of a line that is trimmed and without its citations."""

    length: int
    words: int
    """before citations were taken out"""
    words_left: int
    longest: int
    """characters of the longest word, before citations were taken out"""
    phrases: int
    """see `phrases_in`"""


LINE_RULES = {
    "c4_tfds": LineRule(5, True, '.?!"'),
    "c4_datatrove": LineRule(3, False, ".?!\"'"),
    "c4_fineweb": LineRule(3, False, ""),
}
"""The released code; datatrove's defaults; FineWeb's, which leaves out the rule of terminal punctuation."""

MAXIMUM_WORD_LENGTH = 1000

KEPT, DROPPED, LOREM_IPSUM, CURLY_BRACKET = range(4)
"""What a rule says of a line; the last two drop the page."""

_CITATION = re.compile(r"\[\d*]|\[edit]|\[citation needed]")
_PHRASES = (
    "lorem ipsum",
    "javascript",
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
_CITATION_WORDS = ("[edit]", "[citation needed]")


def _code_points(words: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    joined = np.array([ord(character) for word in words for character in word], np.int32)
    return joined, np.cumsum([0, *map(len, words)])


_PHRASE_CHARS, _PHRASE_OFFSETS = _code_points(_PHRASES)
_CITED_CHARS, _CITED_OFFSETS = _code_points(_CITATION_WORDS)


def keep_lines(text: str, rule: str) -> str:
    """The lines of a text that a rule of `LINE_RULES` keeps, trimmed and without citations."""
    chars = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)
    number = list(LINE_RULES).index(rule)
    verdicts = _verdicts(chars, character_flags(), lower_case(), rule_table(), number)
    lines = text.split("\n")
    kept = [_CITATION.sub("", lines[i].strip()) for i, verdict in enumerate(verdicts) if verdict == KEPT]
    return "\n".join(kept).strip()


def rule_table() -> np.ndarray:
    """`LINE_RULES` as numbers, a row each: words, whether citations go first, then up to five end marks
    (int32)."""
    table = np.zeros((len(LINE_RULES), 7), np.int32)
    for row, rule in zip(table, LINE_RULES.values(), strict=True):
        row[0], row[1] = rule.minimum_words, rule.words_without_citations
        row[2 : 2 + len(rule.end_marks)] = [ord(mark) for mark in rule.end_marks]
    return table


@compiled()
def without_citations(chars, start, stop, flags, line):
    """Copy ``chars[start:stop]`` without citations into ``line``; returns the length of what is left."""
    length = 0
    i = start
    while i < stop:
        if chars[i] == 91:  # [
            end = _citation_end(chars, i, stop, flags)
            if end:
                i = end
                continue
        line[length] = chars[i]
        length += 1
        i += 1
    return length


@compiled()
def words_and_longest(chars, start, stop, flags):
    """Words between white space, and the length of the longest."""
    words, longest, length = 0, 0, 0
    for i in range(start, stop):
        if flags[chars[i]] & SPACE:
            length = 0
        else:
            words += length == 0
            length += 1
            longest = max(longest, length)
    return words, longest


@compiled()
def phrases_in(line, length, lower):
    """Which of the phrases occur in a line, as bits, and in the eighth bit whether ``{`` does."""
    found = 0
    for i in range(length):
        char = lower[line[i]]
        if char == 123:
            found |= 256
        elif char == 108 or char == 106 or char == 116 or char == 112 or char == 99 or char == 117:
            for phrase in range(len(_PHRASE_OFFSETS) - 1):
                begin, end = _PHRASE_OFFSETS[phrase], _PHRASE_OFFSETS[phrase + 1]
                if _PHRASE_CHARS[begin] != char or i + end - begin > length:
                    continue
                k = 1
                while k < end - begin and lower[line[i + k]] == _PHRASE_CHARS[begin + k]:
                    k += 1
                if k == end - begin:
                    found |= 1 << phrase
    return found


@compiled()
def verdict(rule, line, facts):
    """What a rule (a row of `rule_table`) says of a line without its citations."""
    length, phrases = facts.length, facts.phrases
    if facts.longest > MAXIMUM_WORD_LENGTH:
        return DROPPED
    if rule[2]:
        last = line[length - 1] if length else 0
        marked = False
        for mark in rule[2:]:
            marked |= mark != 0 and mark == last
        if not marked or (length >= 3 and last == 46 and line[length - 2] == 46 and line[length - 3] == 46):
            return DROPPED
    if (facts.words_left if rule[1] else facts.words) < rule[0]:
        return DROPPED
    if phrases & 1:
        return LOREM_IPSUM
    if phrases & 2:
        return DROPPED
    if phrases & 256:
        return CURLY_BRACKET
    return DROPPED if phrases & 0xFC else KEPT


@compiled()
def _citation_end(chars, i, stop, flags):
    """Where the citation that begins at ``i`` ends; 0 if none does."""
    end = i + 1
    while end < stop and flags[chars[end]] & DIGIT:
        end += 1
    if end < stop and chars[end] == 93:  # ]
        return end + 1
    for word in range(len(_CITED_OFFSETS) - 1):
        begin, size = _CITED_OFFSETS[word], _CITED_OFFSETS[word + 1] - _CITED_OFFSETS[word]
        if i + size > stop:
            continue
        k = 0
        while k < size and chars[i + k] == _CITED_CHARS[begin + k]:
            k += 1
        if k == size:
            return i + size
    return 0


@compiled()
def _verdicts(chars, flags, lower, rules, number):
    count = 1
    for char in chars:
        count += char == 10
    verdicts = np.empty(count, np.uint8)
    line = np.empty(len(chars), np.int32)
    begin, found = 0, 0
    for i in range(len(chars) + 1):
        if i == len(chars) or chars[i] == 10:
            start, stop = trimmed(chars, begin, i, flags)
            words, longest = words_and_longest(chars, start, stop, flags)
            length = without_citations(chars, start, stop, flags, line)
            words_left, _ = words_and_longest(line, 0, length, flags)
            facts = LineFacts(length, words, words_left, longest, phrases_in(line, length, lower))
            verdicts[found] = verdict(rules[number], line, facts)
            found += 1
            begin = i + 1
    return verdicts
