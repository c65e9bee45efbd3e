"""Reading what `encode` wrote: splits of token ids, and how many bytes of text a token stands for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from tasks.stage import StageError

CHUNK = 1 << 22


class TokenFile(BaseModel):
    """One file of a split."""

    file: str
    tokens: int
    documents: int
    bytes: int


class TokenIndex(BaseModel):
    """The content of ``index.json``."""

    dtype: Literal["uint16", "uint32"]
    vocab_size: int = Field(gt=0)
    special_tokens: dict[str, int]
    splits: dict[str, list[TokenFile]]
    snapshot: str


class TokenCorpus:
    """The directory of tokens, read without loading a split.

    Raises:
        StageError: if the index is missing or broken, or a file is not as long as the index says.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        path = directory / "index.json"
        try:
            self.index = TokenIndex.model_validate_json(path.read_text("utf-8"))
        except (OSError, ValidationError, UnicodeDecodeError) as error:
            raise StageError(f"{path} is not an index of tokens: {error}") from None
        if "bos" not in self.index.special_tokens:
            raise StageError(f"{path}: special_tokens has no `bos`; documents cannot be told apart")
        self.bos_id = self.index.special_tokens["bos"]

    def chunks(self, split: str) -> Iterator[np.ndarray]:
        """The tokens of a split, a bounded piece at a time."""
        for tokens in self.files(split):
            for first in range(0, len(tokens), CHUNK):
                yield np.asarray(tokens[first : first + CHUNK])

    def files(self, split: str) -> Iterator[np.ndarray]:
        """The tokens of each file of a split, mapped into memory."""
        dtype = np.dtype(self.index.dtype).newbyteorder("<")
        for entry in self.index.splits.get(split, []):
            path = self.directory / entry.file
            size = path.stat().st_size if path.exists() else 0
            if size != entry.tokens * dtype.itemsize:
                raise StageError(
                    f"{path} has {size} bytes; the index says {entry.tokens} tokens of {self.index.dtype}"
                )
            yield np.memmap(path, dtype, "r") if size else np.empty(0, dtype)

    def documents(self, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the documents of one file begin and end, starts_D and ends_D.

        Raises:
            StageError: if the file does not begin with the token that begins a document.
        """
        starts = [
            first + np.flatnonzero(tokens[first : first + CHUNK] == self.bos_id)
            for first in range(0, len(tokens), CHUNK)
        ]
        starts_D = np.concatenate(starts) if starts else np.empty(0, np.int64)
        if len(tokens) and (not len(starts_D) or starts_D[0] != 0):
            raise StageError(f"a file of {self.directory} does not begin with <|begin|> (id {self.bos_id})")
        return starts_D, np.append(starts_D[1:], len(tokens)).astype(np.int64)


def token_bytes(directory: Path) -> np.ndarray | None:
    """UTF-8 bytes that each token stands for, bytes_V; special tokens stand for none.

    A byte-level token is written with one character for each byte. None for a tokenizer of another kind.
    """
    content = json.loads((directory / "tokenizer.json").read_text("utf-8"))
    if (content.get("decoder") or {}).get("type") != "ByteLevel":
        return None
    vocabulary: dict[str, int] = content["model"]["vocab"]
    special = {token["id"] for token in content.get("added_tokens", [])}
    bytes_V = np.zeros(max([*vocabulary.values(), *special]) + 1, dtype=np.int64)
    for piece, index in vocabulary.items():
        bytes_V[index] = 0 if index in special else len(piece)
    return bytes_V
