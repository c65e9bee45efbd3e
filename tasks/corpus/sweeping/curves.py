"""What a sweep finds."""

from __future__ import annotations

from pydantic import BaseModel

from tasks.corpus.sweeping.border import Example
from tasks.corpus.sweeping.scale import Scale
from tasks.corpus.sweeping.thresholds import Side


class Point(BaseModel):
    """What a threshold keeps, of the documents of its curve."""

    threshold: float
    documents: int
    """kept by this bound alone"""
    characters: int
    policy_documents: int
    """kept by it and everything else that the policy says"""
    policy_characters: int


class Curve(BaseModel):
    """A bound of the entry of a rule that decides in a scope."""

    scope: str
    signal: str
    side: Side
    bound: float | None
    """as the policy has it"""
    examples_at: float | None
    """the value that the examples lie around"""
    documents: int
    """that the entry judges"""
    characters: int
    unmeasured: int
    """of them without a value: kept whatever the bound"""
    passes_the_rest: int
    """of them that all else of the policy would keep"""
    points: list[Point]
    bars: list[int]
    """documents in even stretches of ``scale``"""
    scale: Scale
    just_kept: list[Example]
    just_removed: list[Example]

    @property
    def present(self) -> Point | None:
        """What the bound as it is keeps."""
        return next((point for point in self.points if point.threshold == self.bound), None)


class Sweep(BaseModel):
    """All bounds of a rule, or both of a signal that has no rule."""

    name: str
    selection: dict[str, list[str]]
    documents: int
    """that were selected"""
    characters: int
    unjudged: int
    """that the rule does not judge"""
    policy_documents: int
    """that the policy keeps as it is"""
    policy_characters: int
    rules_of_signal: list[str]
    """rules that bound the same signal under another name"""
    curves: list[Curve]
