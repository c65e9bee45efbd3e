"""The flow `pipeline`: the whole journey."""

from __future__ import annotations

from prefect import flow

from flows import alignment, corpus, pretraining, release
from flows.run_parameters import AS_IT_IS, RunParameters
from flows.stage import Outcome
from flows.workspace import workspace

STAGES = (*corpus.STAGES, *pretraining.STAGES, *alignment.STAGES, *release.STAGES)


@flow(name="pipeline", persist_result=False)
def pipeline(run: RunParameters = AS_IT_IS) -> list[Outcome]:
    """Raw documents in, a released language model and a report out."""
    with workspace(run, *STAGES) as here:
        if here.has_work:
            corpus.corpus(run)
            pretraining.pretraining(run)
            alignment.alignment(run)
            release.release(run)
        return here.outcomes
