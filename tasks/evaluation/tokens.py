"""What evaluation reads of the tokens: where documents lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tasks.corpus.encoding.index import TokenIndex
from tasks.training.token_files import TokenStream


def open_split(directory: Path, index: TokenIndex, split: str) -> TokenStream | None:
    """The tokens of a split; None where it has none.

    Raises:
        StageError: as `TokenStream`.
    """
    return TokenStream(directory, index, split) if index.splits.get(split) else None


def document_bounds(stream: TokenStream | None) -> tuple[np.ndarray, np.ndarray]:
    """Positions where documents begin, starts_D, and end, ends_D (exclusive)."""
    if stream is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return np.append(0, stream.ends_D[:-1]), stream.ends_D
