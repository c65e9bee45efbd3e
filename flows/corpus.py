"""The flow `corpus`."""

from __future__ import annotations

from prefect import flow

from flows.run_parameters import AS_IT_IS, RunParameters
from flows.stage import Outcome
from flows.workspace import workspace

STAGES = ("collect", "score", "clean", "dedup", "mix", "profile", "snapshot", "encode")


@flow(name="corpus", persist_result=False)
def corpus(run: RunParameters = AS_IT_IS) -> list[Outcome]:
    """Documents in, a versioned, tokenised snapshot out."""
    with workspace(run, *STAGES) as here:
        return here.run_stages(*STAGES)
