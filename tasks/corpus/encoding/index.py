"""What lies in a directory of tokens: ``index.json``, written last."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.stage import StageError

INDEX = "index.json"


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class ListedFile(_Model):
    """A file of the directory."""

    file: str
    sha256: str


class TokenFile(ListedFile):
    """A file of tokens; ``part`` is the file of the snapshot that it was made of.

    ``sequences`` and ``pieces`` are those of packed documents; a file without has its documents back to back.
    ``bytes`` counts the text in UTF-8, ``tokens`` leaves padding out.
    """

    part: str
    tokens: int
    documents: int
    bytes: int
    table: ListedFile
    sequences: int | None = None
    pieces: ListedFile | None = None


class SpecialTokens(_Model):
    """The ids that the network has to know."""

    bos: int
    eos: int
    pad: int


class TokenIndex(_Model):
    """The content of ``index.json``.

    A packed sequence has ``context + 1`` tokens: ``context`` inputs, each with the next token as its target.
    ``begins`` and ``ends`` tell whether documents have ``bos`` before and ``eos`` behind their text.
    """

    dtype: Literal["uint16", "uint32"]
    vocab_size: int
    context: int
    special_tokens: SpecialTokens
    begins: bool
    ends: bool
    tokenizer: list[ListedFile]
    splits: dict[str, list[TokenFile]]
    snapshot: str


def token_type(vocab_size: int) -> Literal["uint16", "uint32"]:
    """The smallest type of numpy's that holds every id."""
    return "uint16" if vocab_size <= 2**16 else "uint32"


def read_index(directory: Path) -> TokenIndex:
    """Read ``index.json``.

    Raises:
        StageError: naming the file and what is wrong with it.
    """
    path = directory / INDEX
    try:
        return TokenIndex.model_validate_json(path.read_text("utf-8"))
    except FileNotFoundError:
        raise StageError(f"{path} does not exist; the stage encode writes it") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise StageError(f"{path} is not an index of token files; run encode again: {error}") from None


def write_index(directory: Path, index: TokenIndex) -> None:
    """Write ``index.json``."""
    (directory / INDEX).write_text(index.model_dump_json(indent=1) + "\n", "utf-8")
