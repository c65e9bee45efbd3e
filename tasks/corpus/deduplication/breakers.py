"""Circuit breakers: deduplication that eats a source, or finds the corpus to be one cluster, is stopped.

Candidates that nobody verified have wiped whole sources elsewhere; pairs are verified here, but boilerplate
that cleaning left makes true near-duplicates of documents that should stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from tasks.corpus.deduplication.arrays import mapped_array
from tasks.corpus.deduplication.choosing import Chosen
from tasks.corpus.deduplication.ids import hexadecimal
from tasks.corpus.deduplication.signing import source_key
from tasks.parameters import StageParams
from tasks.stage import StageError


class BreakerParams(StageParams):
    """What stops the stage."""

    max_source_loss: float = Field(
        default=0.9, gt=0, le=1, description="share of a source; above it the stage stops"
    )
    max_cluster_share: float = Field(
        default=0.1, gt=0, le=1, description="of all documents; a larger cluster stops the stage"
    )
    breaker_documents: int = Field(
        default=50, ge=1, description="sources and clusters of fewer documents stop nothing"
    )


def check_breakers(sources: Counter[str], chosen: Sequence[Chosen], params: BreakerParams) -> None:
    """Look at what would go of so many documents of each source.

    Raises:
        StageError: if a source or the corpus loses too much, with the evidence.
    """
    lost: Counter[int] = Counter()
    for part in chosen:
        lost.update(part.lost)
    for source, total in sorted(sources.items()):
        gone = lost[source_key(source)]
        if total >= params.breaker_documents and gone / total > params.max_source_loss:
            raise StageError(
                f"source {source} would lose {gone} of its {total} documents to deduplication; "
                f"{_worst([part.file for part in chosen], source_key(source))}. "
                "Look at that document; if it is right, raise dedup.max_source_loss"
            )
    largest = max(chosen, key=lambda part: part.cluster, default=None)
    total = sum(sources.values())
    if largest and largest.cluster >= params.breaker_documents:
        share = largest.cluster / total
        if share > params.max_cluster_share:
            raise StageError(
                f"{largest.cluster} of {total} documents are one cluster of duplicates of "
                f"{_name(largest.kept)}. Look at that document; if it is right, raise dedup.max_cluster_share"
            )


def _worst(files: Sequence[Path], source: int) -> str:
    """The document for which most of a source would go."""
    counts: Counter[tuple[int, int]] = Counter()
    for path in files:
        held = mapped_array(path)
        kept_R2 = held["kept_id"][held["source"] == np.uint64(source)]
        names, numbers = np.unique(kept_R2, axis=0, return_counts=True)
        counts.update({(int(high), int(low)): int(n) for (high, low), n in zip(names, numbers, strict=True)})
    kept, number = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return f"{number} of them for {_name(kept)}"


def _name(numbers: tuple[int, int]) -> str:
    return hexadecimal(np.array([numbers], np.uint64))[0].as_py()
