"""Dialogues as token ids: the special tokens, the chat template, and the masks that say what is learnt.

A document is ``<|begin|> text <|end|>``; a dialogue is
``<|begin|> (<|user|> question <|assistant|> answer <|end|>)+``. A tokenizer made elsewhere may have other
names for begin, end and pad: its ``tokenizer_config.json`` says which.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from tokenizers import Encoding, Tokenizer

BEGIN = "<|begin|>"
END = "<|end|>"
PAD = "<|pad|>"
USER = "<|user|>"
ASSISTANT = "<|assistant|>"
SPECIAL_TOKENS = (BEGIN, END, PAD, USER, ASSISTANT)
ROLES = {"bos_token": BEGIN, "eos_token": END, "pad_token": PAD}
"""Keys of ``tokenizer_config.json``, and the token of each where the file does not say another."""

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}"
    "{{ '<|user|>' + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}"
    "{{ '<|assistant|>' + message['content'] + eos_token }}"
    "{% else %}"
    "{{ raise_exception('the roles are user and assistant, not ' + message['role']) }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


class Message(BaseModel):
    """One turn of a dialogue."""

    model_config = ConfigDict(strict=True, frozen=True)

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True)
class Example:
    """Token ids of a dialogue or of a pair's side, and True for each token that is learnt."""

    tokens: list[int]
    answer: list[bool]


def tokenizer_config(context: int) -> dict[str, Any]:
    """The content of ``tokenizer_config.json`` for a model of ``context`` positions."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN,
        "eos_token": END,
        "pad_token": PAD,
        "additional_special_tokens": [USER, ASSISTANT],
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
        "padding_side": "left",
    }


class ChatTokenizer:
    """The tokenizer of a model directory, and how it writes dialogues.

    Raises:
        FileNotFoundError: if the directory has no ``tokenizer.json``.
        ValueError: if that file is no tokenizer, or lacks one of the special tokens.

    Without ``tokenizer_config.json`` the special tokens have the names of this project.
    """

    def __init__(self, directory: Path) -> None:
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist: a model directory holds its tokenizer")
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception for whatever is wrong with the file
            raise ValueError(f"{path} is not a tokenizer: {error}") from None
        # The words of users and documents are text: "<|end|>" in them must not end anything.
        self._tokenizer.encode_special_tokens = True
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        # Begin and end are set here, and nothing may trim the characters that a token stands for.
        self._tokenizer.post_processor = None  # pyright: ignore[reportAttributeAccessIssue]
        names = _role_names(directory / "tokenizer_config.json")
        self.bos_id = self._special(names["bos_token"], path)
        self.eos_id = self._special(names["eos_token"], path)
        self.pad_id = self._special(names["pad_token"], path)
        self.user_id = self._special(USER, path)
        self.assistant_id = self._special(ASSISTANT, path)
        self._vocab_size = max(self._tokenizer.get_vocab().values()) + 1

    @property
    def vocab_size(self) -> int:
        """Rows that an embedding needs: the largest id and one, special tokens included."""
        return self._vocab_size

    @property
    def unknown_id(self) -> int | None:
        """The token for what the vocabulary does not have, if there is one: byte-level ones have none."""
        unknown = getattr(self._tokenizer.model, "unk_token", None)
        return self._tokenizer.token_to_id(unknown) if unknown else None

    @property
    def falls_back_to_bytes(self) -> bool:
        """Whether what the vocabulary does not have becomes the tokens ``<0x00>`` … ``<0xFF>``."""
        return bool(getattr(self._tokenizer.model, "byte_fallback", False))

    def vocabulary(self) -> dict[str, int]:
        """Every token with its id."""
        return self._tokenizer.get_vocab()

    def encode(self, text: str) -> list[int]:
        """Ids of a text alone; never a special token, whatever the text contains."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def encodings(self, texts: Sequence[str], offsets: bool = True) -> list[Encoding]:
        """The ids of several texts, on all cores: with the characters that each is for, or faster without."""
        encode = self._tokenizer.encode_batch if offsets else self._tokenizer.encode_batch_fast
        return encode(texts, add_special_tokens=False)

    def decode_each(self, tokens: Sequence[int]) -> list[str]:
        """The text of each id alone, special tokens included."""
        return self._tokenizer.decode_batch([[token] for token in tokens], skip_special_tokens=False)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some ids, without special tokens."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def prompt(self, messages: Sequence[Message], context: int | None = None) -> list[int]:
        """Ids up to and with the ``<|assistant|>`` after which the next answer begins.

        Of a dialogue longer than ``context``, whole old turns go first, then the beginning of the oldest
        question that is left.

        Raises:
            ValueError: if the roles do not alternate from user to user.
        """
        _check_roles(messages, last="user")
        turns = [(self.encode(q.content), self.encode(a.content)) for q, a in _pairs(messages[:-1])]
        last = self.encode(messages[-1].content)
        if context is not None:
            room = context - 3 - len(last)
            while turns and room < sum(len(q) + len(a) + 3 for q, a in turns):
                turns.pop(0)
            if room < 0:
                last = last[-room:]
        return [*self._opening(turns), self.user_id, *last, self.assistant_id]

    def dialogue(self, messages: Sequence[Message], context: int | None = None) -> Example | None:
        """A whole dialogue; answers and their ``<|end|>`` are learnt, nothing else.

        One longer than ``context`` loses whole old turns first, then the beginning of the last question; None
        if the last answer does not fit with at least one token of its question.

        Raises:
            ValueError: if the roles do not alternate from user to assistant.
        """
        _check_roles(messages, last="assistant")
        *earlier, last = _pairs(messages)
        answer = [*self.encode(last[1].content), self.eos_id]
        room = None if context is None else context - len(answer)
        if room is not None and room < 4:
            return None
        prompt = self.prompt([m for pair in earlier for m in pair] + [last[0]], room)
        learnt = _answer_mask(prompt, self.assistant_id, self.eos_id)
        return Example(prompt + answer, learnt + [True] * len(answer))

    def pair(self, prompt: str, chosen: str, rejected: str, context: int) -> tuple[Example, Example] | None:
        """Both sides of a preference after the same prompt, cut at its beginning to fit the longer answer.

        None if the longer answer does not fit with at least one token of the prompt.
        """
        answers = [[*self.encode(text), self.eos_id] for text in (chosen, rejected)]
        room = context - max(map(len, answers))
        if room < 4:
            return None
        before = self.prompt([Message(role="user", content=prompt)], room)
        first, second = (
            Example(before + answer, [False] * len(before) + [True] * len(answer)) for answer in answers
        )
        return first, second

    def _opening(self, turns: list[tuple[list[int], list[int]]]) -> list[int]:
        opening = [self.bos_id]
        for question, answer in turns:
            opening += [self.user_id, *question, self.assistant_id, *answer, self.eos_id]
        return opening

    def _special(self, token: str, path: Path) -> int:
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise ValueError(f"{path} has no token {token}; it needs {', '.join(SPECIAL_TOKENS)}")
        return found


def _role_names(path: Path) -> dict[str, str]:
    """The names of begin, end and pad by the keys of `ROLES`.

    Raises:
        ValueError: naming the file that is not JSON, or not an object.
    """
    try:
        content = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not an object of settings")
    return {key: token_name(content.get(key)) or usual for key, usual in ROLES.items()}


def token_name(given: Any) -> str | None:
    """The token that an entry of a tokenizer's settings names: a text, or an object with ``content``."""
    if isinstance(given, dict):
        given = given.get("content")
    return given if isinstance(given, str) else None


def _check_roles(messages: Sequence[Message], last: str) -> None:
    roles = [message.role for message in messages]
    expected = ["user" if i % 2 == 0 else "assistant" for i in range(len(roles))]
    if not roles or roles != expected or roles[-1] != last:
        raise ValueError(f"the roles must alternate from user to {last}, not be {', '.join(roles) or 'none'}")


def _pairs(messages: Sequence[Message]) -> list[tuple[Message, Message]]:
    return list(zip(messages[::2], messages[1::2], strict=True))


def _answer_mask(tokens: list[int], assistant_id: int, eos_id: int) -> list[bool]:
    """True from behind each ``<|assistant|>`` up to and with the next ``<|end|>``."""
    mask, inside = [], False
    for token in tokens:
        mask.append(inside)
        if token == assistant_id:
            inside = True
        elif token == eos_id:
            inside = False
    return mask
