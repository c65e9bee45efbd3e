"""What the lines of a document look like, in compiled loops: Gopher's and FineWeb's measures of lines."""

from __future__ import annotations

from tasks.compiled import compiled
from tasks.corpus.scoring.characters import SPACE, TERMINAL

SHORT_LINE = 30
"""Characters of a line that FineWeb calls short (Penedo et al. 2024)."""

_BULLETS = (0x2022, 0x2D)  # • and -
_ELLIPSIS = 0x2026


@compiled()
def trimmed(chars, start, stop, flags):
    """The bounds of a line without the white space around it."""
    while start < stop and flags[chars[start]] & SPACE:
        start += 1
    while stop > start and flags[chars[stop - 1]] & SPACE:
        stop -= 1
    return start, stop


@compiled()
def ends_in_ellipsis(chars, start, stop):
    """Whether ``...`` or ``…`` ends the line."""
    if stop > start and chars[stop - 1] == _ELLIPSIS:
        return True
    return stop - start >= 3 and chars[stop - 1] == 46 and chars[stop - 2] == 46 and chars[stop - 3] == 46


@compiled()
def count_lines(chars, starts, stops, count, flags):
    """Lines that are not blank, begin with a bullet, end in an ellipsis, in a terminal mark, are short.

    A bullet is ``•`` or ``-``, as in Gopher. The last number is that of the characters of the lines not
    blank.
    """
    filled, bullets, ellipses, terminal, short, characters = 0, 0, 0, 0, 0, 0
    for i in range(count):
        start, stop = trimmed(chars, starts[i], stops[i], flags)
        if start == stop:
            continue
        filled += 1
        characters += stops[i] - starts[i]
        first = chars[start]
        bullets += first == _BULLETS[0] or first == _BULLETS[1]
        ellipses += ends_in_ellipsis(chars, start, stop)
        terminal += (flags[chars[stops[i] - 1]] & TERMINAL) != 0
        short += stops[i] - starts[i] <= SHORT_LINE
    return filled, bullets, ellipses, terminal, short, characters


@compiled()
def count_marks(chars, count):
    """The number of ``#``, and that of ``...`` (without overlap) and ``…``."""
    hashes, ellipses, stops = 0, 0, 0
    for i in range(count):
        char = chars[i]
        hashes += char == 35
        ellipses += char == _ELLIPSIS
        if char == 46:
            stops += 1
            if stops == 3:
                ellipses += 1
                stops = 0
        else:
            stops = 0
    return hashes, ellipses
