"""The parameters of an assessment, and the one way in which it loads, scores and samples models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from tasks.parameters import StageParams
from tasks.stage import StageError
from tasks.training.chat import ChatTokenizer, Message

if TYPE_CHECKING:
    import torch

    from models.heads import RewardModel
    from models.transformer import CausalLM
    from tasks.evaluation.losses import Scored
    from tasks.evaluation.responses import Response


class RewardSampling(StageParams):
    """How responses are drawn whose reward and divergence are measured."""

    prompts: int = Field(default=64, ge=0, description="held-out questions; all, if there are fewer")
    max_new_tokens: int = Field(default=48, ge=1)
    temperature: float = Field(default=1.0, gt=0, description="at 1 the KL is unbiased")
    top_p: float = Field(default=1.0, gt=0, le=1)


class AnswerSampling(StageParams):
    """The questions that base, tuned and aligned answer side by side."""

    prompts: list[str] = Field(default=[], description="questions, in the order of the report")
    max_new_tokens: int = Field(default=64, ge=1)
    temperature: float = Field(default=0.0, ge=0, description="0 is greedy")
    top_p: float = Field(default=1.0, gt=0, le=1)


class AssessParams(StageParams):
    """What is measured, on how much, and how exactly."""

    seed: int = Field(default=1, ge=0)
    context: int | None = Field(
        default=None, ge=2, description="tokens of a window; null: all the model takes"
    )
    validation_tokens: int | None = Field(
        default=32768, ge=1, description="scored tokens; null: all there are"
    )
    batch_size: int = Field(default=32, ge=1, description="sequences scored together; changes no result")
    precision: Literal["fp32", "bf16"] = Field(default="fp32", description="bf16: under autocast")
    max_broken: float = Field(
        default=0.01, ge=0, le=1, description="share of instruction rows that may be broken"
    )
    unigram_factor: float = Field(default=3.0, gt=0, description="base must be so many times below unigram")
    sampling_group: int = Field(default=64, ge=1, description="prompts that share a stream of random numbers")
    rewards: RewardSampling = RewardSampling()
    answers: AnswerSampling = AnswerSampling()


@dataclass(frozen=True)
class Bench:
    """What every measurement needs to know of how it is made: parameters, device, and the tokenizer."""

    params: AssessParams
    device: torch.device
    chat: ChatTokenizer

    @property
    def cast(self) -> torch.dtype | None:
        """The type of autocast, if any."""
        import torch

        return torch.bfloat16 if self.params.precision == "bf16" else None

    def load(self, directory: Path) -> CausalLM:
        """A language model, ready to be measured.

        Raises:
            StageError: as `tasks.training.model_directory.open_model`.
        """
        from tasks.training.model_directory import open_model

        model, _ = open_model(directory)
        return model.to(self.device).eval()

    def load_reward(self, directory: Path) -> RewardModel:
        """A reward model; raises as `load`."""
        from tasks.training.model_directory import open_reward_model

        model, _ = open_reward_model(directory)
        return model.to(self.device).eval()

    def losses(self, model: CausalLM, sequences: Sequence[Scored]) -> np.ndarray:
        """losses_N as of `tasks.evaluation.losses.sequence_losses`."""
        from tasks.evaluation.losses import sequence_losses

        return sequence_losses(model, sequences, batch_size=self.params.batch_size, cast=self.cast)

    def respond(
        self, model: CausalLM, dialogues: list[list[Message]], how: RewardSampling | AnswerSampling
    ) -> list[Response]:
        """One response to each dialogue, which ends with a question; what is too long loses its beginning.

        Raises:
            StageError: if ``max_new_tokens`` leaves no room for a question.
        """
        from tasks.evaluation.responses import Sampling, respond

        # One more for the EOS that the reward model is shown where a response has none.
        room = model.config.max_position_embeddings - how.max_new_tokens - 1
        if room < 4:
            raise StageError(
                f"assess: max_new_tokens {how.max_new_tokens} leaves no room for a prompt in the model's "
                f"{model.config.max_position_embeddings} positions"
            )
        prompts = [self.chat.prompt(dialogue, room) for dialogue in dialogues]
        sampling = Sampling(
            how.max_new_tokens, how.temperature, how.top_p, self.params.seed, self.params.sampling_group
        )
        return respond(
            model, prompts, sampling, eos_id=self.chat.eos_id, pad_id=self.chat.pad_id, cast=self.cast
        )
