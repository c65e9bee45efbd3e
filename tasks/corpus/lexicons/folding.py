"""The form in which words and texts are compared, with the way back to the text as it was.

Folding is Unicode's NFKC_Casefold (Unicode Standard, section 3.13): width, case and characters that do not
show are gone. Two things are added for words that someone disguises: combining marks that make no letter of
their own are dropped, and white space of any length is one blank.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

LEET = {"@": "a", "0": "o", "1": "il", "3": "e", "4": "a", "5": "s", "7": "t", "$": "s", "!": "i"}
"""Characters and the letters they may stand for."""


@dataclass(frozen=True)
class Folded:
    """A folded text.

    Attributes:
        codes: its code points; bytes where the original is ASCII, four bytes each elsewhere.
        kept: which of the code points before white space was joined are still there.
        sources: for each of those the offset in the original that it comes from; None if it is its own.
        length: characters of the original.
    """

    codes: np.ndarray
    kept: np.ndarray
    sources: np.ndarray | None
    length: int

    @cached_property
    def text(self) -> str:
        """The folded text itself."""
        return _decode(self.codes)

    @cached_property
    def skeleton(self) -> str:
        """The text with each letter and whatever may stand for it written alike: ``1ick`` as ``lick``."""
        tables = _tables()
        return _decode((tables.skeleton if self.codes.itemsize > 1 else tables.ascii_skeleton)[self.codes])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Offsets in the original of a passage, with what was dropped right behind its last character."""
        after = self._origin[end] if end < len(self._origin) else self.length
        return int(self._origin[start]), int(max(after, self._origin[end - 1] + 1))

    @cached_property
    def _origin(self) -> np.ndarray:
        import numpy as np

        return np.flatnonzero(self.kept) if self.sources is None else self.sources[self.kept]


def fold(text: str) -> Folded:
    """Fold a text.

    A combining mark stays where it makes a letter of its own with the one before (``e`` and U+0301 are ``é``,
    another letter than ``e``), and where it belongs to a script (Thai vowels, Hebrew points); what is stacked
    or struck over letters besides is dropped.
    """
    import numpy as np

    sources = None
    if text.isascii():
        mapped = _tables().ascii[np.frombuffer(text.encode("ascii"), np.uint8)]
    else:
        mapped, sources = _fold_beyond_ascii(text)
    blank = mapped == 32
    kept = np.ones(len(mapped), bool)
    kept[1:] = ~(blank[1:] & blank[:-1])
    return Folded(mapped if kept.all() else mapped[kept], kept, sources, len(text))


def _fold_beyond_ascii(text: str) -> tuple[np.ndarray, np.ndarray | None]:
    import numpy as np

    tables = _tables()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
    mapped, sources = tables.mapped[codes], None
    if (mapped == _EXPANDS).any():
        mapped, sources = _expand(codes, mapped)
    if tables.joins[mapped].any():
        mapped = _compose(mapped.copy())
    kept = mapped != _DROPPED
    if not kept.all():
        mapped, sources = mapped[kept], np.flatnonzero(kept) if sources is None else sources[kept]
    return mapped, sources


_DROPPED = 0
_EXPANDS = 2**32 - 1

# Marks of no script: diacritics, Cyrillic's signs, their extensions, those for symbols, halves, and variation
# selectors. Marks outside of these blocks are how a script writes its vowels.
_NOISE = ((0x300, 0x370), (0x483, 0x48A), (0x1AB0, 0x1B00), (0x1DC0, 0x1E00), (0x20D0, 0x2100),
          (0x3099, 0x309B), (0xFE00, 0xFE10), (0xFE20, 0xFE30), (0xE0100, 0xE01F0))  # fmt: skip
# Format characters and those that Unicode calls default-ignorable though they are letters.
_INVISIBLE = frozenset((0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0))
# Hangul's vowels and final consonants join by arithmetic, not by the database of characters.
_HANGUL = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))
# Where characters that fold are; the other planes hold ideographs and private ones.
_FOLDING = (*range(0x20000), *range(0x2F800, 0x2FA20), *range(0xE0000, 0xE0200))


@dataclass(frozen=True)
class _Tables:
    mapped: np.ndarray  # code point -> folded code point, or one of the two signs above
    joins: np.ndarray  # code point -> whether it may join the one before, or is noise
    noise: np.ndarray  # code point -> whether it is a mark of no script
    skeleton: np.ndarray
    ascii: np.ndarray  # the beginnings of `mapped` and `skeleton` as bytes
    ascii_skeleton: np.ndarray
    expansions: dict[int, str]


@cache
def _tables() -> _Tables:
    import numpy as np

    mapped = np.arange(0x110000, dtype="<u4")
    joins = np.zeros(0x110000, bool)
    skeleton = np.arange(0x110000, dtype="<u4")
    expansions: dict[int, str] = {}
    for code in _FOLDING:
        folded = _fold_character(chr(code))
        if not folded:
            mapped[code] = _DROPPED
        elif len(folded) == 1:
            mapped[code] = ord(folded)
        else:
            mapped[code] = _EXPANDS
            expansions[code] = folded
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            joins[int(parts[1], 16)] = True
    joins[list(_HANGUL)] = True
    noise = np.zeros(0x110000, bool)
    for start, end in _NOISE:
        noise[start:end] = True
    for character, letters in LEET.items():
        skeleton[ord(character)] = ord(letters[0])
    skeleton[ord("l")] = ord("i")
    ascii_tables = mapped[:128].astype(np.uint8), skeleton[:128].astype(np.uint8)
    return _Tables(mapped, joins | noise, noise, skeleton, *ascii_tables, expansions)


def _fold_character(character: str) -> str:
    if character.isspace() or character == "\0":
        return " "
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
    return "".join(part for part in folded if not _invisible(part))


def _invisible(character: str) -> bool:
    return ord(character) in _INVISIBLE or unicodedata.category(character) == "Cf"


def _expand(codes: np.ndarray, mapped: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Write out characters that fold to several, and tell where each comes from."""
    import numpy as np

    expansions = _tables().expansions
    places = np.flatnonzero(mapped == _EXPANDS)
    lengths = np.ones(len(codes), np.int64)
    lengths[places] = [len(expansions[code]) for code in codes[places].tolist()]
    starts = np.cumsum(lengths) - lengths
    origin = np.repeat(np.arange(len(codes)), lengths)
    written = mapped[origin]
    for code in np.unique(codes[places]).tolist():
        here = starts[places[codes[places] == code]]
        for position, character in enumerate(expansions[code]):
            written[here + position] = ord(character)
    return written, origin


def _compose(codes: np.ndarray) -> np.ndarray:
    """Join marks with the letters before them; those that join nothing and are of no script are dropped."""
    import numpy as np

    tables = _tables()
    places = np.flatnonzero(tables.joins[codes])
    marks = codes[places]
    base, letter, previous = -1, _DROPPED, -1
    for place, mark, noise in zip(places.tolist(), marks.tolist(), tables.noise[marks].tolist(), strict=True):
        if previous < 0 or (place > previous + 1 and (codes[place - 1] or codes[previous + 1 : place].any())):
            base = place - 1
            while base >= 0 and codes[base] == _DROPPED:
                base -= 1
            letter = int(codes[base]) if base >= 0 else _DROPPED
        previous = place
        joined = _joined(letter, mark)
        if joined:
            letter = codes[base] = joined
            codes[place] = _DROPPED
        elif noise:
            codes[place] = _DROPPED
        else:
            base, letter = place, mark
    return codes


@lru_cache(2**14)
def _joined(letter: int, mark: int) -> int:
    """The one character that a letter and a mark make, or 0."""
    joined = unicodedata.normalize("NFC", chr(letter) + chr(mark))
    return ord(joined) if len(joined) == 1 else 0


def _decode(codes: np.ndarray) -> str:
    if codes.itemsize == 1:
        return codes.tobytes().decode("ascii")
    return codes.tobytes().decode("utf-32-le", "surrogatepass")
