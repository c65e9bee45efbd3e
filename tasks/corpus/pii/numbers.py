"""The stretches of a text where long numbers stand: most documents have none, and cost no more than the
look."""

from __future__ import annotations

import re
from collections.abc import Iterator

Stretch = tuple[int, int]


def number_stretches(text: str) -> list[Stretch]:
    """Start and end of what surrounds runs with six digits or more, apart from each other and in order.

    Between digits may stand what separates the groups of a number, and capital letters (IBAN, codice
    fiscale).
    """
    stretches: list[Stretch] = []
    for run in _RUN.finditer(text):
        if _SIX_DIGITS.match(run[0]):
            start, end = max(0, run.start() - _BEFORE), min(len(text), run.end() + _AFTER)
            if stretches and start <= stretches[-1][1]:
                start = stretches.pop()[0]
            stretches.append((start, end))
    return stretches


def matches(pattern: re.Pattern[str], text: str, stretches: list[Stretch]) -> Iterator[re.Match[str]]:
    """The matches of a pattern in these stretches; what it looks back at may lie before one."""
    for start, end in stretches:
        yield from pattern.finditer(text, start, end)


_RUN = re.compile(r"[0-9][0-9A-Z ()./+\-]{5,}+")
_SIX_DIGITS = re.compile("(?:[0-9][^0-9]*+){6}")
# The letters before the digits of a number, and the longest of those after them (Malta's IBAN).
_BEFORE, _AFTER = 16, 36
