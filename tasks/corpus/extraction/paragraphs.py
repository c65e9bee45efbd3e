"""Blocks of text put together: what the converters of line-based markup share."""

from __future__ import annotations

from collections.abc import Iterable

_FIRST_WIDE = "\u2e80"


def join_lines(lines: Iterable[str]) -> str:
    """Hard-wrapped lines as one: a blank between them, none between two ideographs or kana."""
    joined: list[str] = []
    for line in lines:
        line = line.strip()
        if not line:
            continue
        if joined and not (_is_wide(joined[-1][-1]) and _is_wide(line[0])):
            joined.append(" ")
        joined.append(line)
    return "".join(joined)


def cells_as_row(cells: Iterable[str]) -> str:
    """A row of a table as a line; empty if all cells are."""
    cells = [cell.strip() for cell in cells]
    return " | ".join(cells).strip() if any(cells) else ""


class Paragraphs:
    """Blocks in order, a blank line between them unless the later one is ``tight``."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._last = ""

    def add(self, text: str, kind: str = "paragraph", tight: bool = False) -> None:
        """Add a block; of two items or rows in a row the second is tight in any case."""
        if not text.strip():
            return
        tight = tight or (kind == self._last and kind in ("item", "row"))
        if self._lines and not tight:
            self._lines.append("")
        self._lines.append(text)
        self._last = kind

    def __bool__(self) -> bool:
        return bool(self._lines)

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines)


def _is_wide(character: str) -> bool:
    """Of a script without blanks between words, or its punctuation (Korean has them)."""
    return character >= _FIRST_WIDE and not "\uac00" <= character <= "\ud7a3"
