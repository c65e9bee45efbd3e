"""A rebalance as a table: what there was, what was asked, what is given, and why not more."""

from __future__ import annotations

from collections.abc import Sequence

from flows.rebalance_plan import RebalancePlan
from tasks.corpus.mixture.comparison import Comparison

COLUMNS = ("before", "asked", "given", "epochs", "available", "because")


def rows(plan: RebalancePlan, compared: Sequence[Comparison]) -> list[dict[str, str]]:
    """A row for each value, as Prefect's artifacts take them."""
    return [
        {
            " · ".join(plan.shown): " · ".join(item.group),
            "before": "–" if item.before is None else _percent(item.before),
            "asked": _percent(item.asked),
            "given": _percent(item.given),
            "epochs": f"{item.epochs:.2f}",
            "available": _bytes(item.available_bytes),
            "because": item.because,
        }
        for item in compared
    ]


def text(plan: RebalancePlan, compared: Sequence[Comparison]) -> str:
    """The same for a terminal or a log."""
    found = rows(plan, compared)
    header = dict.fromkeys(found[0])
    widths = {name: max(len(name), *(len(row[name]) for row in found)) for name in header}
    lines = [{name: name for name in header}, *found]
    return "\n".join(
        "  ".join(
            cell.ljust(widths[name]) if name not in COLUMNS[:-1] else cell.rjust(widths[name])
            for name, cell in line.items()
        ).rstrip()
        for line in lines
    )


def sizes(plan: RebalancePlan, given_bytes: int) -> str:
    """How much text there was, was asked for, and is given."""
    before = "no mixture" if plan.before is None else _bytes(sum(plan.before.values()))
    said = f"training text: before {before}, asked {_bytes(plan.budget_bytes)}, given {_bytes(given_bytes)}"
    if given_bytes < 0.98 * plan.budget_bytes:
        said += f" (all that can be given is seen maximum_epochs = {plan.params.maximum_epochs:g} times)"
    return said


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    return f"{size:.1f} TB"
