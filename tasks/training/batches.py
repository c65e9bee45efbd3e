"""Batches of packed tokens, straight from the token files; the batch of a step has no hidden state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from tasks.stage import StageError
from tasks.training.permutation import permute

INDEX = "index.json"


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class TokenFile(_Model):
    """One entry of the index: a file of tokens, documents back to back."""

    file: str
    tokens: int
    documents: int
    bytes: int
    sha256: str


class SpecialTokens(_Model):
    """The ids that the network has to know."""

    bos: int
    eos: int
    pad: int


class TokenIndex(_Model):
    """What ``index.json`` of a token directory says."""

    dtype: Literal["uint16", "uint32"]
    vocab_size: int
    special_tokens: SpecialTokens
    splits: dict[str, list[TokenFile]]
    snapshot: str


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
    except (ValidationError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise StageError(f"{path} is not an index of token files: {error}") from None


class TokenStream:
    """The tokens of one split, one file after the other, mapped into memory."""

    def __init__(self, directory: Path, index: TokenIndex, split: str) -> None:
        """Map the files.

        Raises:
            StageError: naming the file that is missing or has another size than the index says.
        """
        files = index.splits.get(split)
        if not files:
            raise StageError(f"{directory / INDEX} lists no files of the split `{split}`")
        self.vocab_size = index.vocab_size
        self.paths = [directory / entry.file for entry in files]
        self.bytes = sum(entry.bytes for entry in files)
        dtype = np.dtype(index.dtype).newbyteorder("<")
        self._parts = [_map(path, entry.tokens, dtype) for path, entry in zip(self.paths, files, strict=True)]
        self._ends = np.cumsum([entry.tokens for entry in files])

    def __len__(self) -> int:
        """Number of tokens."""
        return int(self._ends[-1])

    def read(self, start: int, length: int) -> np.ndarray:
        """``length`` tokens (int64) from position ``start``, across files; fewer at the end of the split.

        Raises:
            StageError: naming the file with a token outside the vocabulary.
        """
        pieces = []
        stop = min(start + length, len(self))
        part = int(np.searchsorted(self._ends, start, side="right"))
        while start < stop:
            begin = int(self._ends[part]) - len(self._parts[part])
            piece = self._parts[part][start - begin : stop - begin].astype(np.int64)
            if piece.size and piece.max() >= self.vocab_size:
                raise StageError(
                    f"{self.paths[part]} holds token {piece.max()}, but the vocabulary has "
                    f"{self.vocab_size}; the file does not belong to this index"
                )
            pieces.append(piece)
            start += len(piece)
            part += 1
        return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


class PackedBatches:
    """Windows of ``context`` inputs and their targets, cut from the stream without regard to documents.

    Window w holds tokens w·context … (w+1)·context, the last one as a target only, so that no token is a
    target twice. An epoch is a permutation of all windows; the tokens behind the last whole window are left.
    """

    def __init__(self, stream: TokenStream, context: int, batch_size: int, seed: int) -> None:
        """Prepare.

        Raises:
            StageError: if the stream has not even one window.
        """
        self.stream = stream
        self.context = context
        self.batch_size = batch_size
        self.seed = seed
        self.windows = (len(stream) - 1) // context
        if self.windows < 1:
            raise StageError(
                f"{stream.paths[0].parent} has {len(stream)} tokens to train on, fewer than one window of "
                f"context + 1 = {context + 1}. Give more documents, or set a smaller pretrain.context."
            )

    def window_numbers(self, step: int) -> np.ndarray:
        """The windows of step 1, 2, …: a pure function of seed and step, whatever was asked before."""
        places = np.arange((step - 1) * self.batch_size, step * self.batch_size)
        epochs, positions = np.divmod(places, self.windows)
        numbers = np.empty_like(places)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            numbers[here] = permute(positions[here], self.windows, (self.seed, int(epoch)))
        return numbers

    def at_step(self, step: int) -> dict[str, Tensor]:
        """``tokens``, ``targets`` (int64) and ``mask`` (bool, all True), each of shape (batch, context)."""
        size = self.context + 1
        rows = [self.stream.read(int(w) * self.context, size) for w in self.window_numbers(step)]
        return _shifted(torch.from_numpy(np.stack(rows)))


def validation_batches(stream: TokenStream, context: int, batch_size: int) -> Iterator[dict[str, Tensor]]:
    """The windows of a stream in order: every token but the first, which has no context, is a target once.

    The last window may be short; it is filled up, and ``mask`` is False there.
    """
    starts = range(0, len(stream) - 1, context)
    for first in range(0, len(starts), batch_size):
        rows = [stream.read(start, context + 1) for start in starts[first : first + batch_size]]
        tokens_BT = torch.zeros(len(rows), context + 1, dtype=torch.int64)
        for row_T, tokens in zip(tokens_BT, rows, strict=True):
            row_T[: len(tokens)] = torch.from_numpy(tokens)
        lengths_B = torch.tensor([len(row) - 1 for row in rows])
        batch = _shifted(tokens_BT)
        batch["mask"] = torch.arange(context)[None, :] < lengths_B[:, None]
        yield batch


def _shifted(tokens_BT: Tensor) -> dict[str, Tensor]:
    """The one place where targets are shifted against inputs."""
    targets_BT = tokens_BT[:, 1:].contiguous()
    mask_BT = torch.ones_like(targets_BT, dtype=torch.bool)
    return {"tokens": tokens_BT[:, :-1].contiguous(), "targets": targets_BT, "mask": mask_BT}


def _map(path: Path, tokens: int, dtype: np.dtype) -> np.ndarray:
    if not path.is_file():
        raise StageError(f"{path} does not exist, but {INDEX} lists it")
    expected, found = tokens * dtype.itemsize, path.stat().st_size
    if found != expected:
        raise StageError(
            f"{path} has {found} bytes, but {INDEX} says {tokens} tokens, which are {expected}. "
            "It is cut short or not of this index: run encode again."
        )
    return np.memmap(path, dtype, mode="r") if tokens else np.empty(0, dtype)
