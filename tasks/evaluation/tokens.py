"""What evaluation reads of the tokens: where documents lie, and how many bytes of text a token stands for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tasks.stage import StageError
from tasks.training.batches import TokenIndex, TokenStream

CHUNK = 1 << 22


def open_split(directory: Path, index: TokenIndex, split: str) -> TokenStream | None:
    """The tokens of a split; None where it has none.

    Raises:
        StageError: as `TokenStream`.
    """
    return TokenStream(directory, index, split) if index.splits.get(split) else None


def chunks(stream: TokenStream | None) -> Iterator[np.ndarray]:
    """All tokens of a split, a bounded piece at a time."""
    if stream is not None:
        for first in range(0, len(stream), CHUNK):
            yield stream.read(first, CHUNK)


def document_bounds(stream: TokenStream | None, bos_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions where documents begin, starts_D, and end, ends_D (exclusive).

    Raises:
        StageError: if the split does not begin with the token that begins a document.
    """
    if stream is None or not len(stream):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = [np.flatnonzero(ids == bos_id) + number * CHUNK for number, ids in enumerate(chunks(stream))]
    starts_D = np.concatenate(starts)
    if not len(starts_D) or starts_D[0] != 0:
        raise StageError(f"{stream.paths[0]} does not begin with a document's first token (id {bos_id})")
    return starts_D, np.append(starts_D[1:], len(stream))


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
