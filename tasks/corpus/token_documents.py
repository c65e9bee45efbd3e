"""Which documents a token file holds: a table beside it, a row for each document, in order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

COLUMNS = ("id", "copy", "tokens")
"""The document, which copy of it, and its tokens in the file, begin and end included."""


def documents_path(tokens: Path, file: str) -> Path:
    """The table of a token file."""
    return tokens / file.replace(".bin", ".documents.parquet")


def write_token_documents(path: Path, rows: Iterable[tuple[str, int, int]]) -> None:
    """Write the rows of `COLUMNS`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = (pa.string(), pa.int32(), pa.int64())
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema)
    pq.write_table(table, path, compression="zstd")
