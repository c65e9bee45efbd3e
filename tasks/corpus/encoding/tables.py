"""The tables beside a token file: its documents, and for packed sequences the pieces that they are of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.stage import StageError

if TYPE_CHECKING:
    import pyarrow

DOCUMENTS = {"id": "string", "copy": "int32", "tokens": "int64", "characters": "int64"}
"""One row for each document in the order of the snapshot: which copy of it, its tokens (begin and end
included), its characters."""

PIECES = {
    "sequence": "int32",
    "position": "int32",
    "tokens": "int32",
    "document": "int32",
    "first": "int64",
    "start": "int64",
    "end": "int64",
}
"""One row for each piece of a document, by sequence and position: the sequence of the file, where in it the
piece begins, its tokens, the row of the document's table, the piece's first token in the document, and the
characters of the document, from ``start`` to before ``end``, that its tokens stand for."""


def documents_name(token_file: str) -> str:
    """The name of the table of a token file's documents."""
    return token_file.replace(".bin", ".documents.parquet")


def pieces_name(token_file: str) -> str:
    """The name of the table of a token file's pieces."""
    return token_file.replace(".bin", ".pieces.arrow")


def write_documents(path: Path, columns: dict[str, pyarrow.Array]) -> None:
    """Write the columns of `DOCUMENTS`."""
    import pyarrow.parquet as pq

    pq.write_table(_table(columns, DOCUMENTS), path, compression="zstd")


def read_documents(path: Path, columns: list[str]) -> pyarrow.Table:
    """Some columns of a table of documents.

    Raises:
        StageError: naming the file that is missing or no such table.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=columns)
    except (OSError, pa.ArrowInvalid) as error:
        raise StageError(f"{path} is no table of a token file ({error}): run encode again") from None


def write_pieces(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write the columns of `PIECES` as one batch, uncompressed: whoever reads it maps it into memory."""
    import pyarrow as pa

    table = _table({name: pa.array(values) for name, values in columns.items()}, PIECES).combine_chunks()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows))


def map_pieces(path: Path) -> dict[str, np.ndarray]:
    """The columns of `PIECES`, mapped into memory.

    Raises:
        StageError: naming the file that is missing or no such table.
    """
    import pyarrow as pa

    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        return {name: table.column(name).to_numpy() for name in PIECES}
    except (OSError, KeyError, pa.ArrowInvalid) as error:
        raise StageError(f"{path} is no table of pieces ({error}): run encode again") from None


def _table(columns: dict[str, pyarrow.Array], types: dict[str, str]) -> pyarrow.Table:
    import pyarrow as pa

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])
    return pa.table({name: columns[name].cast(schema.field(name).type) for name in types}, schema)
