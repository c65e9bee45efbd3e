"""Talk with a model on the terminal: answers appear token by token."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tasks.training.chat import ChatTokenizer, Message

if TYPE_CHECKING:
    import torch

    from models.transformer import CausalLM

HELP = "/new begins a new dialogue, /quit ends (so does Ctrl-D)"


class ChatError(Exception):
    """The model or what was asked of it does not fit; the message says how."""


@dataclass(frozen=True)
class Sampling:
    """How answers are drawn.

    Raises:
        ChatError: for a value with which nothing can be drawn.
    """

    temperature: float = 0.7
    top_p: float = 0.9
    max_tokens: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise ChatError(f"--temperature {self.temperature}: it must be 0 or more")
        if not 0 < self.top_p <= 1:
            raise ChatError(f"--top-p {self.top_p}: it must be above 0 and at most 1")
        if self.max_tokens < 1:
            raise ChatError(f"--max-tokens {self.max_tokens}: it must be 1 or more")
        if not 0 <= self.seed < 2**63:
            raise ChatError(f"--seed {self.seed}: it must be from 0 to 2^63 - 1")


@dataclass(frozen=True)
class ChatModel:
    """A language model with the tokenizer of its directory."""

    network: CausalLM
    tokenizer: ChatTokenizer

    def answer(
        self, messages: list[Message], sampling: Sampling, generator: torch.Generator
    ) -> Iterator[str]:
        """The answer to the last message, in pieces that are whole characters.

        Of a dialogue that leaves no room for an answer, old turns are forgotten.
        """
        from models.generation import stream

        context = self.network.config.max_position_embeddings
        # An answer may take half of the context, so that a question always has room.
        room = min(sampling.max_tokens, context // 2)
        prompt = self.tokenizer.prompt(messages, context - room)
        tokens: list[int] = []
        told = 0
        for token in stream(
            self.network,
            prompt,
            max_new_tokens=room,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            generator=generator,
            eos_id=self.tokenizer.eos_id,
        ):
            tokens.append(token)
            text = self.tokenizer.decode(tokens)
            if not text.endswith("\ufffd"):  # a character may be split over tokens
                yield text[told:]
                told = len(text)
        yield self.tokenizer.decode(tokens)[told:]


def open_model(directory: Path) -> ChatModel:
    """Read the model and the tokenizer of a directory.

    Raises:
        ChatError: if it does not exist or does not hold them, or they do not fit each other.
    """
    if not directory.is_dir():
        raise ChatError(f"there is no model in {directory}: `gristmill run` makes one, or give --model DIR")
    from models.hub import load_model

    try:
        tokenizer = ChatTokenizer(directory)
        network = load_model(directory).eval()
    except (FileNotFoundError, ValueError) as error:
        raise ChatError(f"{directory} is no model to talk with: {error}") from None
    if tokenizer.vocab_size > network.config.vocab_size:
        raise ChatError(
            f"{directory}: the tokenizer has {tokenizer.vocab_size} tokens, "
            f"the model only {network.config.vocab_size}"
        )
    return ChatModel(network, tokenizer)


def chat(model: ChatModel, sampling: Sampling, prompt: str | None = None, out: TextIO = sys.stdout) -> None:
    """Answer ``prompt``, or talk until the input ends; the dialogue so far is part of every question."""
    import torch

    generator = torch.Generator(model.network.lm_head.weight.device).manual_seed(sampling.seed)
    messages: list[Message] = []
    if prompt is None and sys.stdin.isatty():
        print(HELP, file=out)
    for question in _questions(prompt):
        if question == "/new":
            messages = []
            continue
        messages.append(Message(role="user", content=question))
        said = []
        for piece in model.answer(messages, sampling, generator):
            said.append(piece)
            print(piece, end="", flush=True, file=out)
        print(file=out)
        messages.append(Message(role="assistant", content="".join(said)))


def _questions(prompt: str | None) -> Iterator[str]:
    if prompt is not None:
        yield prompt
        return
    if sys.stdin.isatty():
        import readline  # noqa: F401 - gives input() line editing and a history
    while True:
        try:
            question = input("> " if sys.stdin.isatty() else "").strip()
        except EOFError:
            return
        if question == "/quit":
            return
        if question:
            yield question
