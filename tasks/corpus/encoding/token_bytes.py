"""How many bytes of text a token stands for, where tokens spell bytes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def token_bytes(directory: Path) -> np.ndarray | None:
    """UTF-8 bytes that each token stands for, bytes_V; special tokens stand for none.

    A byte-level token is written with one character for each byte. None for a tokenizer of another kind.
    """
    content = json.loads((directory / "tokenizer.json").read_text("utf-8"))
    if (content.get("decoder") or {}).get("type") != "ByteLevel":
        return None
    lengths: dict[int, int] = {index: len(piece) for piece, index in content["model"]["vocab"].items()}
    for token in content.get("added_tokens", []):
        lengths[token["id"]] = 0 if token["special"] else len(token["content"].encode())
    bytes_V = np.zeros(max(lengths) + 1, dtype=np.int64)
    bytes_V[list(lengths)] = list(lengths.values())
    return bytes_V
