"""`gristmill rebalance`: what was typed as the flow's form, and what it would give."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import ValidationError

from flows.project import BadInput
from flows.rebalance_parameters import RebalanceParameters


def parameters(arguments: argparse.Namespace) -> RebalanceParameters:
    """The arguments as the flow takes them.

    Raises:
        BadInput: naming the argument and what it may be.
    """
    try:
        return RebalanceParameters(
            by=arguments.by,
            weights=_weights(arguments.weight),
            temperature=arguments.temperature,
            maximum_epochs=arguments.maximum_epochs,
            tokens=arguments.tokens,
            like=arguments.like,
            name=arguments.name,
        )
    except ValidationError as error:
        raise BadInput("\n".join(_complaint(item) for item in error.errors())) from None


def dry_run(project: Path, asked: RebalanceParameters) -> int:
    """Print what would be given, from data/unique; no stage runs and nothing is written."""
    from flows import rebalance_table
    from flows.rebalance_plan import plan_rebalance

    plan = plan_rebalance(project, asked)
    for note in plan.notes:
        print(note)
    print(rebalance_table.text(plan, plan.compared()))
    print(rebalance_table.sizes(plan, sum(group.bytes for group in plan.groups)))
    continues = f"would continue {plan.parent[:12]}" if plan.parent else "would be the first"
    print(f"its snapshot {continues}; without --dry-run it runs with")
    for assignment in plan.assignments:
        print(f"  {assignment}")
    return 0


def _weights(given: list[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for item in given:
        value, separator, share = item.rpartition("=")
        if not separator or not value:
            raise BadInput(f"--weight {item}: write it as VALUE=SHARE, as in law=0.3")
        if value in weights:
            raise BadInput(f"--weight {item}: {value} has a weight already ({weights[value]:g})")
        try:
            weights[value] = float(share)
        except ValueError:
            raise BadInput(f"--weight {item}: the share must be a number from 0 to 1, not {share}") from None
    return weights


def _complaint(item) -> str:
    message = item["msg"].removeprefix("Value error, ")
    if not item["loc"]:
        return message
    option = "weight" if item["loc"][0] == "weights" else str(item["loc"][0]).replace("_", "-")
    return f"--{option}: {message} (given: {item['input']})"
