"""Signatures of documents, a row group at a time, in Spark's workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.ids import binary_ids
from tasks.corpus.deduplication.minhash import band_keys, signatures
from tasks.corpus.deduplication.shingle_files import shingle_file
from tasks.corpus.deduplication.shingles import Shingles, shingle
from tasks.corpus.scoring.segments import segment_words
from tasks.row_groups import RowGroup

if TYPE_CHECKING:
    import pyarrow

SIGNED = (
    "id binary, content binary, source string, rank int, row_group int, first bigint, size int,"
    " keys array<bigint>"
)
"""A document without its text: ``rank`` is its length in characters, negative (the longest comes first);
``row_group``, ``first`` and ``size`` the place of its shingles; ``keys`` those of its bands, null for a text
without words."""


@dataclass(frozen=True)
class SignatureParams:
    """What signatures depend on."""

    shingle_words: int
    bands: int
    rows: int
    seed: int


def signer(params: SignatureParams, shingles: Path, signed: Path) -> Callable[[RowGroup], int]:
    """Writes the shingles and the columns of `SIGNED` of a row group; returns its documents."""

    def sign(group: RowGroup) -> int:
        import pyarrow.parquet as pq

        file, table = shingle_file(shingles, group.number), signed / f"{group.number:06d}.parquet"
        parts = [path.with_name(f".{path.name}.{os.getpid()}") for path in (file, table)]
        documents = first = 0
        with (
            parts[0].open("wb") as hashes,
            pq.ParquetWriter(parts[1], arrow_columns(), compression="lz4") as rows,
        ):
            for batch in group.batches(["id", "content", "source", "text"]):
                words = segment_words(batch.column("text"))
                found = shingle(words, params.shingle_words)
                rows.write_batch(_signed(batch, found, group.number, first, params))
                hashes.write(found.hashes_S.data)
                first += len(found.hashes_S)
                documents += batch.num_rows
        for unfinished, path in zip(parts, (file, table), strict=True):
            unfinished.replace(path)
        return documents

    return sign


def arrow_columns() -> pyarrow.Schema:
    """`SIGNED` as Arrow has it."""
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.binary()), ("content", pa.binary()), ("source", pa.string()), ("rank", pa.int32()),
            ("row_group", pa.int32()), ("first", pa.int64()), ("size", pa.int32()),
            ("keys", pa.list_(pa.int64())),
        ]
    )  # fmt: skip


def _signed(
    batch: pyarrow.RecordBatch, found: Shingles, row_group: int, first: int, params: SignatureParams
) -> pyarrow.RecordBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    made_DP = signatures(found, params.bands * params.rows, params.seed)
    lengths = pc.call_function("utf8_length", [batch.column("text")]).to_numpy(zero_copy_only=False)
    sizes_D = np.diff(found.offsets_D1)
    columns = [
        binary_ids(batch.column("id")),
        binary_ids(batch.column("content")),
        batch.column("source"),
        pa.array(-lengths.astype(np.int32)),
        pa.array(np.full(batch.num_rows, row_group, np.int32)),
        pa.array(found.offsets_D1[:-1] + first),
        pa.array(sizes_D.astype(np.int32)),
        _keys(band_keys(made_DP, params.bands), sizes_D > 0),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_columns())


def _keys(keys_DB: np.ndarray, has_words_D: np.ndarray) -> pyarrow.ListArray:
    import pyarrow as pa

    documents, bands = keys_DB.shape
    offsets = pa.array(np.arange(documents + 1, dtype=np.int32) * bands)
    values = pa.array(keys_DB.view(np.int64).reshape(-1))
    return pa.ListArray.from_arrays(offsets, values, mask=pa.array(~has_words_D))
