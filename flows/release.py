"""The flow `release`."""

from __future__ import annotations

from prefect import flow

from flows.run_parameters import AS_IT_IS, RunParameters
from flows.stage import Outcome
from flows.workspace import workspace

STAGES = ("assess", "release", "report")


@flow(name="release", persist_result=False)
def release(run: RunParameters = AS_IT_IS) -> list[Outcome]:
    """Models in; their assessment, the released model and the report out."""
    with workspace(run, *STAGES) as here:
        return here.run_stages(*STAGES)
