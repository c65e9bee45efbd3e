"""Documents measured, a row group at a time, in Spark's workers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.arrays import mapped_array, write_array
from tasks.corpus.deduplication.ids import numbers_of
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.segments import CONTENT, DOCUMENT, Features, Segment, checksums
from tasks.row_groups import RowGroup

if TYPE_CHECKING:
    import pyarrow

SIGNATURES = "signatures"
"""The file of a segment with its signatures, uint32 of shape (documents, permutations)."""


@dataclass(frozen=True)
class Signed:
    """What became of a row group."""

    sources: Counter[str]
    keys: int


@dataclass(frozen=True)
class Signer:
    """Measures the documents of a row group.

    Attributes:
        method: how.
        contents: whether documents of the same content are to meet as well.
        removed: files with the numbers of rows of the layer, ascending, that are left out.
        signatures: whether signatures are kept.
    """

    method: Method
    contents: bool
    removed: Sequence[Path] = ()
    signatures: bool = False

    def sign(self, group: RowGroup, segment: Segment) -> Signed:
        """Write the files of a row group's segment."""
        removed_R = _rows_removed(self.removed, group)
        held: list[_Batch] = []
        sources: Counter[str] = Counter()
        seen = values = 0
        for batch in group.batches(["id", "content", "source", "text"]):
            left_out = removed_R[(removed_R >= seen) & (removed_R < seen + batch.num_rows)] - seen
            made = self._measured(batch, seen, values, left_out)
            sources.update(batch.column("source").to_pylist())
            held.append(made)
            seen += batch.num_rows
            values += len(made.values)
        whole = _together(held)
        order = np.argsort(whole.keys_K, kind="stable")
        files = {
            "documents": whole.documents_D, "features": whole.values,
            "keys": whole.keys_K[order], "rows": whole.rows_K[order],
        }  # fmt: skip
        if whole.signatures_DP is not None:
            files[SIGNATURES] = whole.signatures_DP
        for what, array in files.items():
            write_array(segment.path(what), array)
        return Signed(sources, len(order))

    def _measured(self, batch: pyarrow.RecordBatch, row: int, first: int, left_out: np.ndarray) -> _Batch:
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = batch.column("text")
        if len(left_out):
            empty_D = np.isin(np.arange(batch.num_rows), left_out)
            texts = pc.call_function("if_else", [pa.array(empty_D), "", texts])
        made = self.method.measure(texts)
        sizes_D = np.diff(made.offsets_D1)
        documents_D = np.zeros(batch.num_rows, DOCUMENT)
        documents_D["id"] = numbers_of(batch.column("id"))
        documents_D["content"] = numbers_of(batch.column("content"))
        documents_D["source"] = _source_keys(batch.column("source"))
        documents_D["first"] = made.offsets_D1[:-1] + first
        documents_D["size"] = sizes_D
        documents_D["features"] = checksums(Features.back_to_back(made.values, made.offsets_D1))
        lengths = pc.call_function("utf8_length", [batch.column("text")])
        documents_D["length"] = lengths.to_numpy(zero_copy_only=False)
        rows_D = np.arange(row, row + batch.num_rows, dtype=np.uint32)
        keys_K, rows_K = made.keys_K & ~CONTENT, np.repeat(rows_D, np.diff(made.key_offsets_D1))
        if self.contents:
            keys_K = np.concatenate([keys_K, documents_D["content"][:, 0] | CONTENT])
            rows_K = np.concatenate([rows_K, rows_D])
        signatures = made.signatures_DP if self.signatures else None
        return _Batch(documents_D, made.values, keys_K, rows_K, signatures)


@dataclass(frozen=True)
class _Batch:
    documents_D: np.ndarray
    values: np.ndarray
    keys_K: np.ndarray
    rows_K: np.ndarray
    signatures_DP: np.ndarray | None


def source_key(name: str) -> int:
    """A number of 64 bits for a source."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest())


def _source_keys(names: pyarrow.StringArray) -> np.ndarray:
    dictionary = names.dictionary_encode()
    keys = np.array([source_key(name) for name in dictionary.dictionary.to_pylist()], np.uint64)
    return keys[dictionary.indices.to_numpy()]


def _rows_removed(files: Sequence[Path], group: RowGroup) -> np.ndarray:
    """The rows of a row group that are in the files, counted from its first."""
    found = [np.empty(0, np.int64)]
    for path in files:
        numbers = mapped_array(path)
        start, stop = np.searchsorted(numbers, [group.first, group.first + group.rows])
        found.append(numbers[start:stop] - group.first)
    return np.sort(np.concatenate(found))


def _together(batches: list[_Batch]) -> _Batch:
    signatures = [batch.signatures_DP for batch in batches if batch.signatures_DP is not None]
    return _Batch(
        np.concatenate([batch.documents_D for batch in batches]),
        np.concatenate([batch.values for batch in batches]),
        np.concatenate([batch.keys_K for batch in batches]),
        np.concatenate([batch.rows_K for batch in batches]),
        np.concatenate(signatures) if signatures else None,
    )
