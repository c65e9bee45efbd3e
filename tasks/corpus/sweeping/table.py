"""A sweep as text for a terminal."""

from __future__ import annotations

from tasks.corpus.sweeping.curves import Curve, Point, Sweep

MOST_ROWS = 15
"""Thresholds shown of each curve, at most, besides the present one."""

_HEADINGS = ("threshold", "kept", "characters", "policy keeps", "characters", "removed", "by it alone")


def render(sweep: Sweep) -> str:
    """What was swept, and a table for each curve; the present threshold bears an asterisk."""
    of = "; ".join(f"{column} {', '.join(values)}" for column, values in sweep.selection.items())
    lines = [
        f"{sweep.name}: {sweep.documents:,} documents{f' ({of})' if of else ''}, {sweep.unjudged:,} of them "
        f"not judged; the policy keeps {share(sweep.policy_documents, sweep.documents)}"
    ]
    if sweep.rules_of_signal:
        lines.append(f"other rules on this signal: {', '.join(sweep.rules_of_signal)}")
    for curve in sweep.curves:
        lines += ["", title(curve), *_table(curve)]
    return "\n".join(lines)


def title(curve: Curve) -> str:
    """What a curve is of."""
    bound = "no bound yet" if curve.bound is None else f"now {curve.bound:g}"
    without = f", {curve.unmeasured:,} without a value" if curve.unmeasured else ""
    return f"{curve.side} of {curve.signal}, {bound}; {curve.scope}: {curve.documents:,} documents{without}"


def rows(curve: Curve, most: int = MOST_ROWS) -> list[Point]:
    """Points spread evenly over a curve, and the present one."""
    last = len(curve.points) - 1
    steps = min(most, len(curve.points)) - 1
    numbers = {round(step * last / steps) for step in range(steps + 1)} if steps > 0 else {0}
    return [
        point
        for number, point in enumerate(curve.points)
        if number in numbers or point.threshold == curve.bound
    ]


def removed_by_it_alone(curve: Curve, point: Point) -> int:
    """Documents that a threshold removes and all else that the policy says would keep."""
    return curve.passes_the_rest - point.policy_documents


def share(part: int, whole: int) -> str:
    """A part as a percentage."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _table(curve: Curve) -> list[str]:
    cells: list[list[str]] = [list(_HEADINGS)]
    for point in rows(curve):
        mark = "* " if point.threshold == curve.bound else ""
        cells.append(
            [
                f"{mark}{point.threshold:g}",
                share(point.documents, curve.documents),
                share(point.characters, curve.characters),
                share(point.policy_documents, curve.documents),
                share(point.policy_characters, curve.characters),
                f"{curve.documents - point.documents:,}",
                f"{removed_by_it_alone(curve, point):,}",
            ]
        )
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADINGS))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
