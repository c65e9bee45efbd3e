"""What was asked of the mixture and what came out, as its report has it."""

from __future__ import annotations

from pydantic import BaseModel


class MixedGroup(BaseModel):
    """One group: shares of the training text, 0 to 1."""

    group: list[str]
    asked: float
    """before the cap on epochs"""
    given: float
    epochs: float
    available_bytes: int
    bytes: int
