"""The flow `alignment`."""

from __future__ import annotations

from prefect import flow

from flows.run_parameters import AS_IT_IS, RunParameters
from flows.stage import Outcome
from flows.workspace import workspace

STAGES = ("sft", "reward", "ppo")


@flow(name="alignment", persist_result=False)
def alignment(run: RunParameters = AS_IT_IS) -> list[Outcome]:
    """A base model in, one out that follows instructions and is tuned by a reward model."""
    with workspace(run, *STAGES) as here:
        return here.run_stages(*STAGES)
