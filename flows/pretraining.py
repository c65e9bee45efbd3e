"""The flow `pretraining`."""

from __future__ import annotations

from prefect import flow

from flows.run_parameters import AS_IT_IS, RunParameters
from flows.stage import Outcome
from flows.workspace import workspace

STAGES = ("pretrain",)


@flow(name="pretraining", persist_result=False)
def pretraining(run: RunParameters = AS_IT_IS) -> list[Outcome]:
    """Tokens in, a base model out."""
    with workspace(run, *STAGES) as here:
        return here.run_stages(*STAGES)
