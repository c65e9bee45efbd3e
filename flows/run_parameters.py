"""What may be said about a run when it is started: in the form of Prefect's UI, or to `gristmill run`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class RunParameters(BaseModel):
    """What may be said about a run when it is started."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    set: list[str] = Field(
        default=[],
        title="Changed parameters",
        description="Entries like ppo.kl.coefficient=0.2: section.key=value, as in params.yaml. With any, "
        "the run gets a folder and a git branch of its own, and the project's folder stays as it is.",
    )
    name: str | None = Field(
        default=None,
        title="Name",
        description="Name of the run in MLflow, and of its branch runs/NAME. Empty: that of the flow run.",
        pattern=r"^[A-Za-z0-9]+([._-][A-Za-z0-9]+)*$",
        max_length=100,
    )


AS_IT_IS = RunParameters()
"""The parameters of the project, in the project's folder."""
