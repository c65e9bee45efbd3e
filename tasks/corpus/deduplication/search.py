"""One method's search for duplicates: measure, meet in buckets, compare, join, choose.

Five jobs of tasks that exchange files of numbers; each task's memory is bounded, whatever the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.arrays import equal_ranges, mapped_array
from tasks.corpus.deduplication.buckets import EXACT, PAIRS, BucketPairing, key_ranges
from tasks.corpus.deduplication.choosing import EDGES_IN_A_TASK, Choosing, Chosen
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.segments import Segment, Segments
from tasks.corpus.deduplication.signing import Signer
from tasks.corpus.deduplication.stars import components_in_rounds
from tasks.corpus.deduplication.verification import EDGES, Verification
from tasks.distributed import run_tasks
from tasks.row_groups import RowGroup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS_IN_A_TASK = 500_000
WORTH_A_TASK = 2_000
SAMPLES = 100_000
"""Pairs by which tasks of about equal work are cut."""


@dataclass(frozen=True)
class Search:
    """How documents are compared, and with which of an earlier index."""

    method: Method
    earlier: Sequence[Segment]
    all_pairs_up_to: int
    max_rounds: int
    signatures: bool
    edges_in_a_task: int = EDGES_IN_A_TASK


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        segments: the new documents, measured.
        sources: how many documents each source has.
        chosen: the documents that go, in files of `tasks.corpus.deduplication.choosing.REMOVAL`.
        rows: the same as numbers of the layer's rows, in files of int64, ascending.
        removed: how many they are.
        candidates: pairs that were compared.
        verified: those that were alike.
        rounds: of the connected components.
    """

    segments: list[Segment]
    sources: Counter[str]
    chosen: list[Chosen]
    rows: list[Path]
    removed: int
    candidates: int
    verified: int
    rounds: int


def find_duplicates(
    spark: SparkSession,
    groups: Sequence[RowGroup],
    removed: Sequence[Path],
    search: Search,
    folder: Path,
) -> Found:
    """Search the documents of a layer's row groups less the rows in ``removed``; files go to ``folder``.

    Documents of the same content are found if nothing was removed yet: whoever goes first does that.
    """
    folder.mkdir(parents=True)
    cores = spark.sparkContext.defaultParallelism
    first = sum(segment.documents for segment in search.earlier)
    names = len({segment.name.split("-")[0] for segment in search.earlier})
    new = [
        Segment(str(folder), f"{names:04d}-{group.number:06d}", first + group.first, group.rows)
        for group in groups
    ]
    signer = Signer(search.method, not removed, removed, search.signatures)
    signed = run_tasks(spark, list(zip(groups, new, strict=True)), lambda pair: signer.sign(*pair))
    segments = Segments([*search.earlier, *new])
    ranges = key_ranges(sum(each.keys for each in signed), cores)
    pairing = BucketPairing(segments, first, search.all_pairs_up_to, folder)
    run_tasks(spark, ranges if new else [], pairing.pair)
    pairs = sorted(folder.glob(f"{PAIRS}-*.npy"))
    verification = Verification(segments, first, search.method, pairs, folder)
    compared = run_tasks(spark, list(enumerate(_pair_ranges(pairs, cores))), verification.verify)
    edges = sorted(folder.glob(f"{EDGES}-*.npy")) + sorted(folder.glob(f"{EXACT}-*.npy"))
    choosing = Choosing(segments, first, search.method, folder)
    rounds = 1
    if sum(len(mapped_array(path)) for path in edges) <= search.edges_in_a_task:
        chosen = run_tasks(spark, [edges], choosing.of_edges)
    else:
        labels, rounds = components_in_rounds(spark, edges, folder, search.max_rounds)
        chosen = run_tasks(spark, list(enumerate(labels)), choosing.of_labels)
    sources = sum((each.sources for each in signed), Counter())
    return Found(
        segments=new,
        sources=sources,
        chosen=chosen,
        rows=[part.rows for part in chosen],
        removed=sum(part.removed for part in chosen),
        candidates=sum(each.candidates for each in compared),
        verified=sum(each.verified for each in compared),
        rounds=rounds,
    )


def _pair_ranges(files: Sequence[Path], cores: int) -> list[tuple[int, int]]:
    """Ranges of first documents that have about as many pairs each."""
    firsts = [mapped_array(path)[:, 0] for path in files]
    total = sum(map(len, firsts))
    samples = [np.array(each[:: max(1, total // SAMPLES)]) for each in firsts]
    return equal_ranges(samples, max(min(cores, -(-total // WORTH_A_TASK)), -(-total // PAIRS_IN_A_TASK)))
