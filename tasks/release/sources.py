"""Whose documents a snapshot holds, and under which licences."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LicensedSource:
    """Documents of one source under one licence."""

    source: str
    license: str
    documents: int


def licensed_sources(snapshot: Path) -> list[LicensedSource]:
    """Every (source, licence) of a snapshot's documents, counted a batch at a time; sorted."""
    import pyarrow.parquet as pq

    counts: Counter[tuple[str, str]] = Counter()
    for part in sorted((snapshot / "documents").glob("*.parquet")):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=65536, columns=["source", "license"]):
                sources, licenses = (batch.column(name).to_pylist() for name in ("source", "license"))
                counts.update(
                    (source or "unknown", license or "unknown")
                    for source, license in zip(sources, licenses, strict=True)
                )
    return [LicensedSource(source, license, number) for (source, license), number in sorted(counts.items())]
