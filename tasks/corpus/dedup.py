"""Clean documents in, one of every group of duplicates out."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tasks.corpus.deduplication.breakers import BreakerParams, check_breakers
from tasks.corpus.deduplication.index import NextIndex, earlier_segments
from tasks.corpus.deduplication.ledger import EXACT_RULE, LedgerWriter, Removals, ledger_parts
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.minhash_method import MinHashMethod
from tasks.corpus.deduplication.search import Found, Search, find_duplicates
from tasks.corpus.deduplication.segments import Segment
from tasks.corpus.deduplication.similarity import Measure
from tasks.distributed import run_tasks
from tasks.layer_filter import Part, PartFilter, layer_parts
from tasks.records import DocumentReport, carry_lineage, record_lineage
from tasks.resources import Resources
from tasks.row_groups import row_groups
from tasks.spark import spark_session
from tasks.stage import Input, Output, run_as_stage, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INDEX = "index"
"""The folder of the index: of an earlier month in the stage's input, of this one in its output."""


class DedupParams(BreakerParams):
    """What counts as a duplicate. 14 bands of 8 rows find a pair of Jaccard 0.8 with probability 0.92."""

    shingle_words: int = Field(default=5, ge=1)
    bands: int = Field(default=14, ge=1)
    rows: int = Field(default=8, ge=1)
    measure: Measure = Field(
        default="jaccard", description="how alike two documents are; containment: how much of the shorter one"
    )
    min_similarity: float = Field(
        default=0.8, gt=0, le=1, description="of the sets of shingles, verified for each pair"
    )
    seed: int = 1
    all_pairs_up_to: int = Field(
        default=64, ge=2, description="documents in a bucket; a larger one is compared with its best"
    )
    max_rounds: int = Field(default=50, ge=2, description="rounds of the connected components")
    keep_index: bool = Field(default=True, description="write what a later month is compared with")


class DedupReport(DocumentReport):
    """What was found alike."""

    indexed_before: int
    exact_duplicates: int
    near_duplicates: int
    candidate_pairs: int
    verified_pairs: int
    largest_cluster: int
    rounds: int


@dataclass(frozen=True)
class _Way:
    """A method, what an index must have in common with it, and the documents that it compares with."""

    method: Method
    parameters: dict[str, Any]
    earlier: Sequence[Segment]


@stage
def dedup(
    clean: Input, earlier: Input, unique: Output, params: DedupParams, resources: Resources
) -> DedupReport:
    """Keep one document of every group of duplicates: the longest, of equals the one with the smallest id.

    Exact duplicates share a content hash. Near-duplicates are candidates that share a band of their MinHash
    signatures and whose shingle sets have a similarity of ``min_similarity``; groups are the connected
    components of such verified pairs. The ledger has, for every removed document, the id that was kept and
    the similarity to it. Documents of the index in ``earlier``, if there is one, stay, and what is like them
    goes; they are not among those that are written.

    Raises:
        StageError: a source lost more than ``max_source_loss``, or a cluster is larger than
            ``max_cluster_share`` of the corpus: with the evidence. The index is damaged, or was made with
            other parameters.
    """
    carry_lineage(clean, unique)
    steps = (unique / ".steps").absolute()
    groups = row_groups(clean)
    with spark_session("dedup", resources) as spark:
        ways = [
            _Way(method, parameters, earlier_segments(spark, earlier / INDEX, method, parameters))
            for method, parameters in _methods(params)
        ]
        found: list[Found] = []
        for way in ways:
            search = Search(
                way.method,
                way.earlier,
                params.all_pairs_up_to,
                params.max_rounds,
                signatures=params.keep_index,
            )
            rows_removed = [path for before in found for path in before.rows]
            found.append(find_duplicates(spark, groups, rows_removed, search, steps / way.method.name))
            check_breakers(found[0].sources, found[-1].chosen, params)
        output = _Output(unique.absolute(), [path for each in found for path in each.rows])
        made = [
            (way.method, way.parameters, way.earlier, each.segments)
            for way, each in zip(ways, found, strict=True)
        ]
        counts = output.write(
            spark,
            layer_parts(clean),
            [
                Removals(way.method, [part.file for part in each.chosen])
                for way, each in zip(ways, found, strict=True)
            ],
            sum(each.removed for each in found),
            NextIndex(unique / INDEX, earlier / INDEX, made, output.removed) if params.keep_index else None,
        )
    record_lineage(unique, "dedup", params)
    shutil.rmtree(steps)
    by_rule = counts["removed_by_rule"]
    return DedupReport(
        **counts,
        records_in=sum(group.rows for group in groups),
        indexed_before=sum(segment.documents for segment in ways[0].earlier),
        exact_duplicates=by_rule.get(EXACT_RULE, 0),
        near_duplicates=sum(count for rule, count in by_rule.items() if rule != EXACT_RULE),
        candidate_pairs=sum(each.candidates for each in found),
        verified_pairs=sum(each.verified for each in found),
        largest_cluster=max(part.cluster for each in found for part in each.chosen),
        rounds=max(each.rounds for each in found),
    )


def _methods(params: DedupParams) -> list[tuple[Method, dict[str, Any]]]:
    """The methods in the order in which they go over the documents, each with the parameters on which its
    features and keys depend."""
    minhash = MinHashMethod(
        params.shingle_words, params.bands, params.rows, params.seed, params.measure, params.min_similarity
    )
    names = ("shingle_words", "bands", "rows", "seed")
    return [(minhash, {name: getattr(params, name) for name in names})]


@dataclass(frozen=True)
class _Output:
    """The stage's output; ``removed`` are files with the numbers of the rows that go."""

    folder: Path
    removed: Sequence[Path]

    def write(
        self,
        spark: SparkSession,
        parts: Sequence[Part],
        removals: Sequence[Removals],
        entries: int,
        index: NextIndex | None,
    ) -> dict[str, Any]:
        """Write documents, ledger and index, all in one job; returns counts of a `DocumentReport`."""
        for name in ("ledger", "documents"):
            (self.folder / name).mkdir(parents=True)
        filtering = PartFilter(self.folder, self.removed)
        ledger = LedgerWriter(self.folder / "ledger", ledger_parts(entries), removals)
        tasks: list[Callable[[], Any]] = [partial(filtering.filter, part) for part in parts]
        tasks += [partial(ledger.write, number) for number in range(ledger.parts)]
        tasks += index.tasks() if index else []
        written = run_tasks(spark, tasks, lambda task: task())
        behind = len(parts) + ledger.parts
        if index:
            index.finish(written[behind:])
        rules: Counter[str] = sum(written[len(parts) : behind], Counter())
        by_source, by_language = Counter(), Counter()
        for (source, language), count in sum(written[: len(parts)], Counter()).items():
            by_source[source] += count
            by_language[language] += count
        return {
            "kept": sum(by_source.values()),
            "removed": sum(rules.values()),
            "removed_by_rule": dict(sorted(rules.items())),
            "kept_by_source": dict(sorted(by_source.items())),
            "kept_by_language": dict(sorted(by_language.items())),
        }


if __name__ == "__main__":
    run_as_stage(dedup)
