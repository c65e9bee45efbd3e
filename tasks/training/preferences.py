"""Preferences: two answers to one prompt, the better one named."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.training.instructions import Split


class PreferenceRow(BaseModel):
    """A prompt, the chosen and the rejected answer, and the rule by which they differ."""

    model_config = ConfigDict(strict=True, frozen=True)

    split: Split
    prompt: str = Field(min_length=1)
    chosen: str = Field(min_length=1)
    rejected: str = Field(min_length=1)
    rule: str = "unknown"

    @model_validator(mode="after")
    def _differ(self) -> PreferenceRow:
        if self.chosen == self.rejected:
            raise ValueError("the chosen and the rejected answer are the same")
        return self
