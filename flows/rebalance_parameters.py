"""What may be said about a rebalance: in the form of Prefect's UI, or to `gristmill rebalance`."""

from __future__ import annotations

from pydantic import Field, model_validator

from flows.run_parameters import RunParameters
from tasks.corpus.mixture.rebalancing import MixtureChange


class RebalanceParameters(MixtureChange):
    """What is to be different in the mixture. The run gets a folder and a git branch of its own."""

    like: str | None = Field(
        default=None,
        title="Like",
        description="In place of weights: the shares of a run (by its name), of a mixture's report or "
        "a snapshot's manifest (file or folder), or of a JSON file {value: share}.",
    )
    name: str | None = Field(
        default=None,
        title="Name",
        description="Name of the run in MLflow, and of its branch runs/NAME. Empty: that of the flow run.",
        pattern=next(
            item.pattern for item in RunParameters.model_fields["name"].metadata if hasattr(item, "pattern")
        ),
        max_length=100,
    )

    @model_validator(mode="after")
    def _one_source_of_shares(self) -> RebalanceParameters:
        if self.like is not None and self.weights:
            raise ValueError("give weights, or a reference whose shares are taken, not both")
        return self

    def _changes_a_level(self) -> bool:
        return super()._changes_a_level() or self.like is not None

    def change(self, weights: dict[str, float]) -> MixtureChange:
        """The change itself, with the weights that were given or that the reference has."""
        return MixtureChange(
            by=self.by,
            weights=weights,
            temperature=self.temperature,
            maximum_epochs=self.maximum_epochs,
            tokens=self.tokens,
        )
