"""Long texts, cut where no token reaches over: a book is encoded on all cores, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

SLICE_CHARACTERS = 2**12
"""From here on a text is cut at the next place that changes no token."""
LONGEST_SLICE = 2**20
"""So many characters further on it is cut anywhere: an encoding takes about a hundred times its text."""

# Words begin at the blank before them, in byte-level vocabularies and in those with "▁".
_PLACE = re.compile(r"(?<=[^\W_]) (?=\S)")
_PROBE = "The mill's 12 wheels grind; ils moulent le blé, слово за словом, 雪 in the end"


@dataclass(frozen=True)
class Slice:
    """A run of characters of a document.

    Attributes:
        split: of which split of the snapshot the document is.
        text: the characters.
        start: where in the document they begin.
        first: whether the document begins here.
        last: whether it ends here.
    """

    split: str
    text: str
    start: int
    first: bool
    last: bool


def slices(split: str, text: str, least: int = SLICE_CHARACTERS) -> Iterator[Slice]:
    """The slices of a text in order, at least one, of ``least`` characters or more but the last.

    They end behind a letter or digit and before a blank. Where there is no such place, as in scripts without
    blanks, a slice goes on for `LONGEST_SLICE` more and ends there, perhaps within what would be one token.
    """
    start = 0
    longest = least + LONGEST_SLICE
    while len(text) - start > least:
        found = _PLACE.search(text, start + least, start + longest)
        if found is None and len(text) - start <= longest:
            break
        end = found.start() if found else start + longest
        yield Slice(split, text[start:end], start, start == 0, False)
        start = end
    yield Slice(split, text[start:], start, start == 0, True)


def slice_size(encode: Callable[[str], Sequence[int]]) -> int:
    """How long slices are at least under a tokenizer: `LONGEST_SLICE` for one whose tokens depend on where a
    text is cut, as of those that put a blank before every text."""
    whole = list(encode(_PROBE))
    for place in _PLACE.finditer(_PROBE):
        at = place.start()
        if [*encode(_PROBE[:at]), *encode(_PROBE[at:])] != whole:
            return LONGEST_SLICE
    return SLICE_CHARACTERS


def batches(given: Iterable[Slice], characters: int) -> Iterator[list[Slice]]:
    """The slices in order, about so many characters at a time."""
    held: list[Slice] = []
    size = 0
    for piece in given:
        held.append(piece)
        size += len(piece.text) + 1
        if size >= characters:
            yield held
            held, size = [], 0
    if held:
        yield held
