"""Circuit breakers: deduplication that eats a source, or finds the corpus to be one cluster, is stopped.

Candidates that nobody verified have wiped whole sources elsewhere; pairs are verified here, but boilerplate
that cleaning left makes true near-duplicates of documents that should stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from tasks.parameters import StageParams
from tasks.stage import StageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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


def check_breakers(documents: DataFrame, removed: DataFrame, params: BreakerParams) -> int:
    """The size of the largest cluster.

    ``removed`` has ``source`` and ``kept``, the id of the document that stays, of all that go.

    Raises:
        StageError: if a source or the corpus loses too much, with the evidence.
    """
    from pyspark.sql import functions as F

    totals = {row["source"]: row["count"] for row in documents.groupBy("source").count().collect()}
    for row in removed.groupBy("source").count().orderBy("source").collect():
        lost, total = row["count"], totals[row["source"]]
        if total >= params.breaker_documents and lost / total > params.max_source_loss:
            kept = removed.where(F.col("source") == row["source"]).groupBy("kept").count()
            worst = kept.orderBy(F.desc("count"), "kept").first()
            shown = f"; {worst['count']} of them for {worst['kept'].hex()}" if worst else ""
            raise StageError(
                f"source {row['source']} would lose {lost} of its {total} documents to deduplication{shown}. "
                "Look at that document; if it is right, raise dedup.max_source_loss"
            )
    largest = removed.groupBy("kept").count().orderBy(F.desc("count"), "kept").first()
    if largest is None:
        return 1
    size = largest["count"] + 1
    if size >= params.breaker_documents and size / sum(totals.values()) > params.max_cluster_share:
        raise StageError(
            f"{size} of {sum(totals.values())} documents are one cluster of duplicates of "
            f"{largest['kept'].hex()}. Look at that document; if it is right, raise dedup.max_cluster_share"
        )
    return size
