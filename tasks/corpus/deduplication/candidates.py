"""Pairs of documents that share a band of their signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.ids import ids_of, numbers_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

ROWS_IN_A_TASK = 2_000_000
"""Of bands; a task holds and sorts so many (about 100 MB)."""


def candidate_pairs(banded: DataFrame, documents: int, bands: int, all_pairs_up_to: int) -> DataFrame:
    """Distinct pairs (``left`` < ``right``, ids of 16 bytes) of documents that are in a bucket together.

    ``banded`` has, of each of ``documents``, ``id``, ``rank`` and the array ``keys``. Of a bucket of up to
    ``all_pairs_up_to`` all pairs are candidates; of a larger one each document with the best of the bucket
    (the smallest rank, of equals the smallest id): a bucket of n costs n - 1 pairs, not n².
    """
    from pyspark.sql import functions as F

    tasks = -(-documents * bands // ROWS_IN_A_TASK)
    least = int(banded.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    rows = banded.select("id", "rank", F.explode("keys").alias("key")).repartition(max(least, tasks), "key")
    return rows.mapInArrow(_paired(all_pairs_up_to), "left binary, right binary").distinct()


def bucket_pairs(
    keys_N: np.ndarray, ranks_N: np.ndarray, numbers_N2: np.ndarray, all_pairs_up_to: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places in N of the two documents of every pair; a pair that shares several keys comes several times."""
    # Most keys are of one document alone: only the others are put in their full order.
    by_key = np.argsort(keys_N, kind="stable")
    same = keys_N[by_key[1:]] == keys_N[by_key[:-1]]
    shared = by_key[np.append(same, False) | np.append(False, same)] if len(by_key) else by_key
    ids_S2 = numbers_N2[shared]
    order = shared[np.lexsort((ids_S2[:, 1], ids_S2[:, 0], ranks_N[shared], keys_N[shared]))]
    ordered_N = keys_N[order]
    firsts_B = np.flatnonzero(np.concatenate([[True], ordered_N[1:] != ordered_N[:-1]]))
    sizes_B = np.diff(np.append(firsts_B, len(order)))
    sizes_N, firsts_N = np.repeat(sizes_B, sizes_B), np.repeat(firsts_B, sizes_B)
    places_N = np.arange(len(order))
    members = np.flatnonzero((sizes_N > all_pairs_up_to) & (places_N > firsts_N))
    lefts, rights = [firsts_N[members]], [members]
    small_N = sizes_N <= all_pairs_up_to
    for step in range(1, min(all_pairs_up_to, int(sizes_B.max(initial=0)))):
        right = np.flatnonzero(small_N & (places_N - firsts_N >= step))
        lefts.append(right - step)
        rights.append(right)
    return order[np.concatenate(lefts)], order[np.concatenate(rights)]


def _paired(
    all_pairs_up_to: int,
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    def paired(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        held = [
            (batch.column("key").to_numpy(), batch.column("rank").to_numpy(), numbers_of(batch.column("id")))
            for batch in batches
        ]
        if not held:
            return
        keys_N, ranks_N, numbers_N2 = (np.concatenate(columns) for columns in zip(*held, strict=True))
        one, other = bucket_pairs(keys_N, ranks_N, numbers_N2, all_pairs_up_to)
        left_P2, right_P2 = numbers_N2[one], numbers_N2[other]
        swap_P = (left_P2[:, 0] > right_P2[:, 0]) | (
            (left_P2[:, 0] == right_P2[:, 0]) & (left_P2[:, 1] > right_P2[:, 1])
        )
        left_P2[swap_P], right_P2[swap_P] = right_P2[swap_P], left_P2[swap_P]
        yield pa.RecordBatch.from_arrays([ids_of(left_P2), ids_of(right_P2)], names=["left", "right"])

    return paired
