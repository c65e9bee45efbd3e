"""A sweep as a page of its own: curves, distributions, and the documents at the border."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import jinja2

import tasks.release
from tasks.corpus.sweeping.curves import Curve, Sweep
from tasks.corpus.sweeping.table import removed_by_it_alone, rows, share, title
from tasks.release.charts import Tick, nice_ticks, number

TEMPLATE = "sweep.html.j2"

LINES = (
    ("this bound alone, documents", "documents", "first"),
    ("this bound alone, characters", "characters", "first thin"),
    ("the whole policy, documents", "policy_documents", "second"),
    ("the whole policy, characters", "policy_characters", "second thin"),
)
"""Name, field of a point, and classes of the style sheet."""


@dataclass(frozen=True)
class Drawing:
    """A curve in a box of 100 by 100: the share kept over the threshold, and the distribution below."""

    lines: list[tuple[str, str, str]]
    """(name, SVG path, classes)"""
    bars: list[tuple[float, float, float]]
    """(left, width, height)"""
    x_ticks: list[Tick]
    marks: list[tuple[float, str]]
    """(place, what stands there)"""


def render(sweep: Sweep) -> str:
    """The page as HTML, which needs nothing else. The same sweep gives the same text."""
    folders = [Path(__file__).parent, *map(Path, tasks.release.__path__)]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "title": title, "rows": rows, "draw": draw}
    return environment.get_template(TEMPLATE).render(
        sweep=sweep, share=share, removed_by_it_alone=removed_by_it_alone
    )


def draw(curve: Curve) -> Drawing:
    """Lay out a curve."""
    scale = curve.scale
    shown = [point for point in curve.points if scale.low <= point.threshold <= scale.high]
    whole = {"documents": curve.documents, "characters": curve.characters}

    def path(field: str) -> str:
        total = max(1, whole[field.removeprefix("policy_")])
        steps = [
            f"{100 * scale.place(point.threshold):.2f} {100 - 100 * getattr(point, field) / total:.2f}"
            for point in shown
        ]
        return "M" + "L".join(steps) if steps else ""

    highest, width = max([1, *curve.bars]), 100 / len(curve.bars)
    marks = [] if curve.bound is None else [(curve.bound, "now")]
    if curve.examples_at is not None and curve.examples_at != curve.bound:
        marks.append((curve.examples_at, "examples"))
    return Drawing(
        lines=[(name, path(field), style) for name, field, style in LINES],
        bars=[
            (round(width * place, 3), round(width * 0.9, 3), round(100 * count / highest, 2))
            for place, count in enumerate(curve.bars)
        ],
        x_ticks=[Tick(round(100 * scale.place(tick), 2), number(tick)) for tick in _ticks(curve)],
        marks=[(round(100 * scale.place(at), 2), f"{what} {number(at)}") for at, what in marks],
    )


def _ticks(curve: Curve) -> list[float]:
    scale = curve.scale
    if scale.logarithmic:
        powers = range(math.ceil(math.log10(scale.high)) + 1)
        ticks = [0.0, *(10.0**power for power in powers)]
        low = scale.place(scale.low)
        placed = [tick for tick in ticks if scale.low <= tick <= scale.high]
        return [tick for tick in placed if tick == 0 or scale.place(tick) > low + 0.02 or tick == placed[0]]
    return [tick for tick in nice_ticks(scale.low, scale.high, 6) if scale.low <= tick <= scale.high]
