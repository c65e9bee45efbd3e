"""Instructions and dialogues: what a row is, and the dialogue it stands for."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from tasks.training.chat import Message

Split = Literal["train", "held_out"]


class InstructionRow(BaseModel):
    """A question (``instruction``, and perhaps ``input``) with its answer, or a dialogue in ``messages``.

    Where there are messages, they alone count.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    split: Split
    instruction: str = ""
    input: str = ""
    output: str = ""
    messages: list[Message] | None = None

    @field_validator("messages")
    @classmethod
    def _alternate(cls, messages: list[Message] | None) -> list[Message] | None:
        for i, message in enumerate(messages or []):
            expected = "user" if i % 2 == 0 else "assistant"
            if message.role != expected:
                raise ValueError(f"message {i} is by {message.role}; the roles alternate and user begins")
            if not message.content.strip():
                raise ValueError(f"message {i} is empty")
        if messages is not None and (not messages or len(messages) % 2):
            raise ValueError("a dialogue ends with an answer of the assistant")
        return messages

    @model_validator(mode="after")
    def _complete(self) -> InstructionRow:
        if self.messages is None:
            for name in ("instruction", "output"):
                if not getattr(self, name).strip():
                    raise ValueError(f"{name} is missing or empty, and there are no messages")
        return self

    def dialogue(self) -> list[Message]:
        """The messages, from user to assistant."""
        if self.messages is not None:
            return self.messages
        question = f"{self.instruction}\n\n{self.input}" if self.input else self.instruction
        return [Message(role="user", content=question), Message(role="assistant", content=self.output)]
