"""What an assessment says: measurements with their errors, and checks with their figures."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from tasks.evaluation.estimates import NO_DATA, Estimate, NoData
from tasks.evaluation.perplexity import Perplexity
from tasks.stage import StageReport


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ValidationText(_Part):
    """Perplexity on held-out documents. Each token of a chosen window is scored once (stride = context)."""

    context: int
    stride: int
    windows: int
    windows_available: int
    tokens: int
    tokens_available: int
    text_bytes: int | None
    models: dict[str, Perplexity | NoData]


class HeldOutAnswers(_Part):
    """Loss on the answers (and their ends) of held-out dialogues, with the masks of training."""

    dialogues: int
    too_long: int
    tokens: int
    models: dict[str, Perplexity | NoData]
    gain: Estimate | NoData
    """Loss of base less loss of tuned, per token, over the same dialogues."""


class Sampled(_Part):
    """Responses of one model: their mean reward, the share that the model ended itself, their tokens."""

    reward: Estimate | NoData
    ended: Estimate | NoData
    length: Estimate | NoData


class Rewards(_Part):
    """Responses of two models to the same held-out prompts, drawn with the same seeds."""

    prompts: int
    temperature: float
    top_p: float
    max_new_tokens: int
    models: dict[str, Sampled]
    gain: Estimate | NoData
    """Reward of aligned less reward of tuned, prompt by prompt."""
    kl_per_token: Estimate | NoData
    kl_per_response: Estimate | NoData


class Check(_Part):
    """Something the run must reach: met if ``value`` is on the right side of ``bound``."""

    statement: str
    passed: bool | NoData
    value: float | NoData
    relation: Literal[">=", ">"]
    bound: float


class InstructionOrigin(_Part):
    """Where instructions come from."""

    source: str
    licence: str
    rows: int


class AssessReport(StageReport):
    """The report of `assess`; the same content is ``results.json`` of the assessment."""

    snapshot: str
    precision: str
    parameters: int
    validation: ValidationText
    answers: HeldOutAnswers
    rewards: Rewards
    checks: dict[str, Check]
    instructions: list[InstructionOrigin]
    instructions_broken: int


def check(statement: str, value: float | NoData, relation: Literal[">=", ">"], bound: float) -> Check:
    """Hold a value against its bound; without a value nothing is decided."""
    passed: bool | NoData = NO_DATA
    if value != NO_DATA:
        passed = value >= bound if relation == ">=" else value > bound
    return Check(statement=statement, passed=passed, value=value, relation=relation, bound=bound)
