"""Entries of lists found in texts, whatever they are disguised as.

All lists that a language is held against are one automaton (Aho and Corasick, 1975) over skeletons, in which
a letter and the digits and signs that may stand for it are written alike. What it finds is then read exactly.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tasks.corpus.lexicons.folding import LEET, fold
from tasks.corpus.lexicons.lists import Lexicon


@dataclass(frozen=True)
class Hit:
    """An entry found in a text, with offsets in the text as it was given."""

    lexicon: str
    entry: str
    start: int
    end: int


class Lexicons:
    """Lists, compiled when a language first needs them."""

    def __init__(self, lexicons: Sequence[Lexicon]) -> None:
        self._lexicons = lexicons
        self._matchers: dict[tuple[int, ...], _Matcher] = {}

    def hits(self, text: str, language: str) -> list[Hit]:
        """The hits of every list that applies to the language, in the order of the text.

        Those of one list do not overlap: where entries do, the one that begins first counts, and of two that
        begin together the longer.
        """
        applying = tuple(
            number for number, lexicon in enumerate(self._lexicons) if lexicon.params.applies_to(language)
        )
        if not applying:
            return []
        if applying not in self._matchers:
            self._matchers[applying] = _Matcher([self._lexicons[number] for number in applying])
        return self._matchers[applying].hits(text)

    def applying(self, language: str) -> set[str]:
        """The names of the lists that a language is held against."""
        return {lexicon.params.name for lexicon in self._lexicons if lexicon.params.applies_to(language)}


def mask_hits(text: str, hits: Iterable[Hit]) -> str:
    """The text with ``<word-LEXICON>`` in place of each hit; hits that overlap become one placeholder."""
    pieces: list[str] = []
    end = 0
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end)):
        if hit.start >= end:
            pieces += [text[end : hit.start], f"<word-{hit.lexicon}>"]
        end = max(end, hit.end)
    return "".join([*pieces, text[end:]])


_SEPARATORS = ".*_-"


@dataclass(frozen=True)
class _Pattern:
    """One way to write an entry.

    Attributes:
        separator: what stands between single letters in ``a.b.c``, or nothing.
    """

    lexicon: str
    entry: str
    folded: str
    separator: str = ""

    def matches(self, text: str, start: int, end: int) -> bool:
        """Whether the folded text has the entry there and not just a part of something longer."""
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (_apart(self.folded[0], before) and _apart(self.folded[-1], after)):
            return False
        if not self.separator:
            return _reads(text[start:end], self.folded)
        longer = (before == self.separator and _kind(text[start - 2 : start - 1])) or (
            after == self.separator and _kind(text[end + 1 : end + 2])
        )
        return not longer and _reads(text[start : end : 1 + len(self.separator)], self.folded)


class _Matcher:
    def __init__(self, lexicons: Sequence[Lexicon]) -> None:
        import ahocorasick

        self._automaton = ahocorasick.Automaton()
        patterns: dict[str, list[_Pattern]] = {}
        for lexicon in lexicons:
            for entry in lexicon.entries:
                folded = fold(fold(entry).text.strip())
                for separator in ("", *(_SEPARATORS if _may_be_spelled_out(folded.text) else "")):
                    pattern = _Pattern(lexicon.params.name, entry, folded.text, separator)
                    patterns.setdefault(separator.join(folded.skeleton), []).append(pattern)
        for skeleton, alike in patterns.items():
            self._automaton.add_word(skeleton, (len(skeleton), alike))
        self._automaton.make_automaton()

    def hits(self, text: str) -> list[Hit]:
        folded = fold(text)
        plain = folded.text
        found: list[Hit] = []
        for last, (length, patterns) in self._automaton.iter(folded.skeleton):
            start, end = last + 1 - length, last + 1
            for pattern in patterns:
                if pattern.matches(plain, start, end):
                    found.append(Hit(pattern.lexicon, pattern.entry, *folded.span(start, end)))
        return _without_overlaps(found)


def _may_be_spelled_out(word: str) -> bool:
    """Whether letters with signs between them may be the word: not of ``x*x*x``, nor of two letters."""
    return len(word) >= 3 and len(set(word)) > 1 and all(map(_kind, word))


def _reads(written: str, entry: str) -> bool:
    """Whether what stands there is the entry, or the entry with digits and signs for some of its letters."""
    if written == entry:
        return True
    for word, wanted in zip(written.split(" "), entry.split(" "), strict=True):
        if word != wanted and not any(map(str.isalpha, word)):
            return False
        for given, letter in zip(word, wanted, strict=True):
            if given != letter and letter not in LEET.get(given, ""):
                return False
    return True


def _apart(edge: str, neighbour: str) -> bool:
    """Whether a word may end between the two characters."""
    kind = _kind(edge)
    return kind in ("", "unsegmented") or _kind(neighbour) != kind


# Han, hiragana, Thai, Lao, Burmese and Khmer put nothing between words. A run of katakana mostly is one word.
_UNSEGMENTED = ((0xE00, 0xF00), (0x1000, 0x10A0), (0x1780, 0x1800), (0x3040, 0x30A0), (0x3400, 0x4DC0),
                (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, 0x323B0))  # fmt: skip
_KATAKANA = ((0x30A0, 0x30FB), (0x30FC, 0x3100), (0x31F0, 0x3200))


@lru_cache(4096)
def _kind(character: str) -> str:
    """What a character does in a word: `word`, `katakana`, `unsegmented`, or nothing."""
    if not character:
        return ""
    code = ord(character)
    if not (character.isalnum() or unicodedata.category(character).startswith("M")):
        return ""
    if any(start <= code < end for start, end in _UNSEGMENTED):
        return "unsegmented"
    return "katakana" if any(start <= code < end for start, end in _KATAKANA) else "word"


def _without_overlaps(hits: list[Hit]) -> list[Hit]:
    ends: dict[str, int] = {}
    kept: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end, hit.lexicon)):
        if hit.start >= ends.get(hit.lexicon, 0):
            kept.append(hit)
            ends[hit.lexicon] = hit.end
    return kept
