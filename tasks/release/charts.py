"""The geometry of line charts: percentages of a plot area, so that text keeps its size on any screen.

The template draws them: lines in an SVG that stretches, ticks and legends as text around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_POINTS = 300


@dataclass(frozen=True)
class Line:
    """Points (x, y) under a name; ``style`` is a class of the style sheet."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str


@dataclass(frozen=True)
class DrawnLine:
    """A line as an SVG path in a box of 100 by 100, and its last value."""

    name: str
    path: str
    style: str
    last: str


@dataclass(frozen=True)
class Tick:
    """A label at a percentage of the axis, from the left or from the top."""

    place: float
    label: str


@dataclass(frozen=True)
class Reference:
    """A level to compare with."""

    name: str
    place: float
    label: str


@dataclass(frozen=True)
class Chart:
    """A chart ready to be drawn; ``summary`` says in words what it shows."""

    title: str
    x_label: str
    lines: list[DrawnLine]
    references: list[Reference]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    summary: str


def line_chart(
    title: str, lines: Sequence[Line], *, x_label: str = "step", references: Sequence[tuple[str, float]] = ()
) -> Chart | None:
    """Lay out lines and reference levels over common axes; None where no line has a finite point."""
    drawn = [
        Line(line.name, [p for p in line.points if all(map(math.isfinite, p))], line.style) for line in lines
    ]
    drawn = [line for line in drawn if line.points]
    if not drawn:
        return None
    xs = [x for line in drawn for x, _ in line.points]
    ys = [y for line in drawn for _, y in line.points] + [level for _, level in references]
    x_low, x_high = min(xs), max(xs)
    y_ticks = nice_ticks(min(ys), max(ys))
    y_low, y_high = min(min(ys), y_ticks[0]), max(max(ys), y_ticks[-1])

    def across(x: float) -> float:
        return 50.0 if x_high == x_low else round(100 * (x - x_low) / (x_high - x_low), 2)

    def down(y: float) -> float:
        return 50.0 if y_high == y_low else round(100 * (y_high - y) / (y_high - y_low), 2)

    x_ticks = [tick for tick in nice_ticks(x_low, x_high, 4, whole=True) if x_low <= tick <= x_high]
    return Chart(
        title=title,
        x_label=x_label,
        lines=[
            DrawnLine(line.name, _path([(across(x), down(y)) for x, y in _thinned(line.points)]), line.style,
                      number(line.points[-1][1]))
            for line in drawn
        ],
        references=[Reference(name, down(level), number(level)) for name, level in references],
        x_ticks=[Tick(across(tick), f"{tick:,.0f}") for tick in x_ticks],
        y_ticks=[Tick(down(tick), _tick_label(tick, y_ticks)) for tick in y_ticks],
        summary="; ".join([f"{title}: " + _told(line, x_label) for line in drawn]
                          + [f"{name} at {number(level)}" for name, level in references]),
    )  # fmt: skip


def nice_ticks(low: float, high: float, about: int = 4, *, whole: bool = False) -> list[float]:
    """Round values from just below ``low`` to just above ``high``, in steps of 1, 2 or 5 · 10ⁿ."""
    if high == low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw * 0.999)
    if whole:
        step = max(1.0, step)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def number(value: float) -> str:
    """Four significant digits with a separator for thousands and a true minus sign."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        shown = f"{value:.4g}"
    else:
        shown = f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.2e}"
    return shown.replace("-", "−")


def _tick_label(tick: float, ticks: Sequence[float]) -> str:
    step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else abs(tick) or 1
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{tick:,.{min(decimals, 6)}f}".replace("-", "−")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most ``MOST_POINTS`` points, evenly taken, the first and the last among them."""
    if len(points) <= MOST_POINTS:
        return list(points)
    last = len(points) - 1
    return [points[round(index * last / (MOST_POINTS - 1))] for index in range(MOST_POINTS)]


def _told(line: Line, x_label: str) -> str:
    (x, y), (x_last, y_last) = line.points[0], line.points[-1]
    return f"{line.name} from {number(y)} at {x_label} {x:g} to {number(y_last)} at {x_label} {x_last:g}"
