"""The texts of a corpus, as benchmarks want them."""

from __future__ import annotations

import gzip
import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tasks.corpus.extraction.normalise import normalise
from tasks.records import DOCUMENT_COLUMNS, ROW_GROUP_BYTES, arrow_schema, content_hash, record_id

CONSTANT = {
    "source": "benchmark", "kind": "book", "domain": "general", "language": "en", "language_score": 1.0,
    "license": "any", "collected_at": "2026-01-01",
}  # fmt: skip


def read_texts(corpus: Path) -> list[str]:
    """The normalised texts of every ``*.jsonl.gz`` with a field ``raw``, markup and all; none is empty."""
    files = sorted(corpus.glob("*.jsonl.gz"))
    if not files:
        sys.exit(f"{corpus} holds no *.jsonl.gz")
    texts = []
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts += [normalise(json.loads(line)["raw"]) for line in lines]
    return [text for text in texts if text]


def write_documents(texts: list[str], layer: Path, part: int = 0) -> list[str]:
    """Write texts as a part of a layer of clean documents, sorted by id; returns their ids."""
    columns = {name: pa.array([value] * len(texts)) for name, value in CONSTANT.items()}
    ids = [record_id("benchmark", f"{part}:{number}", text) for number, text in enumerate(texts)]
    columns |= {
        "id": pa.array(ids),
        "content": pa.array([content_hash(text) for text in texts]),
        "text": pa.array(texts),
        "origin": pa.array([str(number) for number in range(len(texts))]),
    }
    schema = arrow_schema()
    written = pa.schema([schema.field(name) for name in DOCUMENT_COLUMNS])
    for name in ("signals", "meta"):
        columns[name] = pa.array([[]] * len(texts), schema.field(name).type)
    table = pa.table({name: columns[name] for name in DOCUMENT_COLUMNS}, written).sort_by("id")
    (layer / "documents").mkdir(parents=True, exist_ok=True)
    path = layer / "documents" / f"part-{part:05d}.parquet"
    # Row groups as a stage makes them, by the bytes of their text.
    lengths = pc.call_function("binary_length", [table.column("text")]).to_numpy()
    groups = np.cumsum(lengths) // ROW_GROUP_BYTES
    bounds = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(table)]
    with pq.ParquetWriter(path, table.schema, compression="zstd") as file:
        for start, stop in itertools.pairwise(bounds):
            file.write_table(table.slice(start, stop - start), row_group_size=2**31 - 1)
    return ids
