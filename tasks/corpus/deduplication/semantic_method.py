"""Semantic duplicates: documents whose embeddings by a local model point the same way.

Abbas et al., SemDeDup: Data-efficient learning at web-scale through semantic deduplication, 2023; candidates
by random hyperplanes in place of their clusters (see hyperplanes.py).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from tasks.corpus.deduplication.arrays import bounded_runs
from tasks.corpus.deduplication.hyperplanes import cosines, hyperplane_keys
from tasks.corpus.deduplication.method import Measured
from tasks.corpus.deduplication.segments import Features
from tasks.parameters import StageParams
from tasks.stage import StageError
from tasks.training.fingerprint import content_hash

if TYPE_CHECKING:
    import pyarrow

    from tasks.corpus.deduplication.embeddings import EmbeddingModel

NUMBERS_AT_ONCE = 2**22
"""Of the pairs that are compared at once (16 MiB)."""


class SemanticParams(StageParams):
    """Duplicates by what documents mean."""

    model: str = Field(description="a directory with an embedding model in the layout of Hugging Face")
    model_digest: str | None = Field(
        default=None, description="what the stage says that directory's digest is; required"
    )
    min_cosine: float = Field(
        default=0.95, gt=0, le=1, description="of the embeddings of two documents; verified for each pair"
    )
    bands: int = Field(default=20, ge=1, description="documents that share a band are candidates")
    bits: int = Field(default=16, ge=1, le=64, description="hyperplanes of a band")
    seed: int = Field(default=1, ge=0, description="of the hyperplanes")
    tokens: int | None = Field(
        default=None, ge=1, description="of a document that are read; null: as many as the model takes"
    )
    longer: Literal["leave", "beginning"] = Field(
        default="leave",
        description="what the model does not read to its end: not compared, or by its beginning",
    )


@dataclass(frozen=True)
class SemanticMethod:
    """The features of a document are its embedding, float32 of norm 1; none if it is not compared."""

    params: SemanticParams
    digest: str
    name: str = "semantic"
    rule: str = "semantic_duplicate"

    @property
    def threshold(self) -> float:
        """The smallest cosine of duplicates."""
        return self.params.min_cosine

    def measure(self, texts: pyarrow.StringArray) -> Measured:
        """Embeddings, and a key for each band."""
        from tasks.corpus.deduplication.embeddings import embed

        found = embed(_model(self.params.model, self.digest, self.params.tokens), texts.to_pylist())
        compared_D = found.vectors_DE.any(axis=1)
        if self.params.longer == "leave":
            compared_D &= ~found.truncated_D
        vectors_CE = found.vectors_DE[compared_D]
        keys_CB = hyperplane_keys(vectors_CE, self.params.bands, self.params.bits, self.params.seed)
        # Two numbers of 32 bits are one of the 8 bytes that a row of features is made of.
        values = vectors_CE.reshape(-1).view(np.uint64)
        width = found.vectors_DE.shape[1] // 2
        return Measured(
            values,
            np.concatenate([[0], np.cumsum(compared_D * width)]),
            keys_CB.reshape(-1),
            np.concatenate([[0], np.cumsum(compared_D * self.params.bands)]),
        )

    def similarities(self, documents: Features, left_P: np.ndarray, right_P: np.ndarray) -> np.ndarray:
        """The cosines."""
        sizes_D = documents.sizes_D
        held = [np.empty(0)]
        for start, stop in bounded_runs(sizes_D[left_P] + sizes_D[right_P], NUMBERS_AT_ONCE):
            sides = (left_P[start:stop], right_P[start:stop])
            held.append(cosines(*(_vectors(documents, side) for side in sides)))
        return np.concatenate(held)


def semantic_method(params: SemanticParams) -> SemanticMethod:
    """The method, once the model is the one that is meant.

    Raises:
        StageError: the directory is missing, or its digest is not the one in the parameters.
    """
    directory = Path(params.model)
    if not directory.is_dir():
        raise StageError(
            f"dedup.semantic.model: {directory} is no directory; it is to hold an embedding model"
        )
    found = content_hash([directory])
    if found != params.model_digest:
        said = "is not set" if params.model_digest is None else f"is {params.model_digest}"
        raise StageError(
            f"dedup.semantic.model_digest {said}, but {directory} has the digest {found}. Is that the "
            "model you mean? Then write it into params.yaml: DVC knows the model by it"
        )
    resolved = params.model_copy(update={"model": str(directory.absolute())})
    loaded = _model(resolved.model, found, params.tokens)
    if loaded.network.config.hidden_size % 2:
        raise StageError(
            f"{directory}: embeddings of {loaded.network.config.hidden_size} numbers; they must be even"
        )
    return SemanticMethod(resolved, found)


@functools.lru_cache(maxsize=1)
def _model(directory: str, digest: str, tokens: int | None) -> EmbeddingModel:
    """Held by a worker from one batch to the next; another directory is known by its digest."""
    from tasks.corpus.deduplication.embeddings import load_embedding_model

    return load_embedding_model(Path(directory), tokens)


def _vectors(documents: Features, side_P: np.ndarray) -> np.ndarray:
    firsts, sizes = documents.firsts_D[side_P], documents.sizes_D[side_P]
    width = int(sizes.max(initial=0))
    return documents.values[firsts[:, None] + np.arange(width)].view(np.float32)
