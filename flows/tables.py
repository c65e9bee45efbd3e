"""Numbers and columns as a terminal shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def value(value: Any) -> str:
    """A value on part of a line."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:57]}…"


def number(value: int | None) -> str:
    """A count that may not be known."""
    return "?" if value is None else f"{value:,}"


def size(count: int) -> str:
    """Bytes in a unit that a person reads."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numeric = [
        all(cell.replace(",", "").replace("?", "").isdigit() or cell == "?" for cell in column[1:])
        for column in zip(*rows, strict=True)
    ]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if right else f"{cell:<{width}}"
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    )
