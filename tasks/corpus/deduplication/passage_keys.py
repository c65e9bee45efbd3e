"""Which passages are taken for the same: those of one key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from tasks.compiled import compiled
from tasks.corpus.deduplication.passages import passages
from tasks.corpus.scoring.hashing import extended
from tasks.parameters import StageParams
from tasks.records import order_key

if TYPE_CHECKING:
    import pyarrow


class RepeatedPassagesParams(StageParams):
    """What is boilerplate: a passage that many documents have."""

    unit: Literal["line", "paragraph", "both"] = Field(
        default="line", description="both: paragraphs first, then the lines that are left"
    )
    more_than: int = Field(default=10, ge=1, description="documents; a passage of more of them goes from all")
    minimum_characters: int = Field(default=20, ge=1, description="shorter passages stay, however often")
    by: Literal["source", "corpus"] = Field(default="source", description="within what documents are counted")
    kinds: list[Literal["web", "book", "code", "dialogue", "reference"]] = Field(
        default=["web", "book", "dialogue", "reference"],
        description="documents that count and change; in code licences and braces repeat for good reason",
    )


@dataclass(frozen=True)
class KeyedPassages:
    """The passages of a batch of documents that may go, in the order of documents."""

    keys_P: np.ndarray
    """uint64: equal for the same passage, within a source or anywhere. Two others of a thousand million share
    one with a probability of 3 in 100"""
    document_P: np.ndarray
    """int64: number of the document in the batch"""
    kinds_P: np.ndarray
    """uint8: `LINE` or `PARAGRAPH`"""
    first_P: np.ndarray
    """int64: number of the first line"""
    last_P: np.ndarray
    """int64: number of the last line"""


def keyed_passages(
    documents: pyarrow.RecordBatch | pyarrow.Table, params: RepeatedPassagesParams
) -> KeyedPassages:
    """The passages that are long enough, of documents (``text``, ``source``, ``kind``) of the kinds named."""
    columns = (documents.column(name).to_pylist() for name in ("text", "kind"))
    texts = [text if kind in params.kinds else "" for text, kind in zip(*columns, strict=True)]
    found = passages(texts, lines=params.unit != "paragraph", paragraphs=params.unit != "line")
    document_P = np.repeat(np.arange(len(texts)), np.diff(found.offsets_D1))
    long_P = found.characters_P >= params.minimum_characters
    keys_P = _within(found.hashes_P, _scopes(documents.column("source").to_pylist(), params.by)[document_P])
    columns_P = (keys_P, document_P, found.kinds_P, found.first_P, found.last_P)
    return KeyedPassages(*(column_P[long_P] for column_P in columns_P))


def _scopes(sources: list[str], by: str) -> np.ndarray:
    """A number for what each document is counted in: uint64 of shape (D,)."""
    names = {name: int(order_key("source", name)[:16], 16) for name in set(sources)}
    return np.array([names[name] if by == "source" else 0 for name in sources], np.uint64)


@compiled()
def _within(hashes_P, scopes_P):
    keys_P = np.empty(len(hashes_P), np.uint64)
    for p in range(len(hashes_P)):
        keys_P[p] = extended(hashes_P[p], scopes_P[p])
    return keys_P
