"""The flow `rebalance`: the same documents in other shares, as a run of its own."""

from __future__ import annotations

import json
from pathlib import Path

from prefect import flow, get_run_logger
from prefect.artifacts import create_table_artifact
from pydantic import ValidationError

from flows import rebalance_table
from flows.logs import explain_failures_briefly
from flows.project import BadInput, find_project
from flows.rebalance_parameters import RebalanceParameters
from flows.rebalance_plan import RebalancePlan, plan_rebalance
from flows.run_parameters import RunParameters
from flows.stage import Outcome
from flows.workspace import workspace
from tasks.corpus.mix import MixReport
from tasks.corpus.snapshot import read_manifest

STAGES = ("mix", "profile", "snapshot", "encode")
ARTIFACT = "rebalance"


@flow(name="rebalance", persist_result=False)
def rebalance(asked: RebalanceParameters) -> list[Outcome]:
    """Unique documents in, a snapshot with other shares and its tokens out, on a branch of its own."""
    explain_failures_briefly()
    log = get_run_logger()
    plan = plan_rebalance(find_project(), asked)
    for note in plan.notes:
        log.info("%s", note)
    for item in plan.compared():
        if item.because:
            log.warning("%s: asked %.1f %%, to be given %.1f %%: %s", " · ".join(item.group),
                        100 * item.asked, 100 * item.given, item.because)  # fmt: skip
    with workspace(RunParameters(set=plan.assignments, name=asked.name), *STAGES) as here:
        outcomes = here.run_stages(*STAGES)
        title, table = _told(plan, here.folder)
        log.info("%s\n%s", title, rebalance_table.text(plan, table))
        create_table_artifact(rebalance_table.rows(plan, table), key=ARTIFACT, description=title)
        return outcomes


def _told(plan: RebalancePlan, folder: Path):
    """What became of it, in words and by value."""
    path = folder / "reports" / "mix.json"
    try:
        report = MixReport.model_validate(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise BadInput(f"{path} is not the report of stage mix: {error}") from None
    snapshot = read_manifest(folder / "data" / "snapshot").snapshot
    continues = f", continues {plan.parent[:12]}" if plan.parent else ""
    title = f"snapshot {snapshot[:12]}{continues}; {rebalance_table.sizes(plan, report.train_bytes)}"
    return title, plan.compared(report.groups)
