"""Clean documents in, one of every group of duplicates out."""

from __future__ import annotations

import shutil

from pydantic import Field

from tasks.corpus.deduplication.breakers import BreakerParams, check_breakers
from tasks.corpus.deduplication.index import NextIndex
from tasks.corpus.deduplication.ledger import EXACT_RULE, Removals
from tasks.corpus.deduplication.output import DedupOutput
from tasks.corpus.deduplication.passage_keys import RepeatedPassagesParams
from tasks.corpus.deduplication.repeated_passages import RepeatedReport
from tasks.corpus.deduplication.search import Found, Search, find_duplicates
from tasks.corpus.deduplication.ways import MethodParams, ways_over
from tasks.layer_filter import layer_parts
from tasks.records import DocumentReport, carry_lineage, record_lineage
from tasks.resources import Resources
from tasks.row_groups import row_groups
from tasks.spark import spark_session
from tasks.stage import Input, Output, run_as_stage, stage

INDEX = "index"
"""The folder of the index: of an earlier month in the stage's input, of this one in its output."""


class DedupParams(BreakerParams, MethodParams):
    """What counts as a duplicate, what is compared, and what stops the stage."""

    all_pairs_up_to: int = Field(
        default=64, ge=2, description="documents in a bucket; a larger one is compared with its best"
    )
    max_rounds: int = Field(default=50, ge=2, description="rounds of the connected components")
    repeated: RepeatedPassagesParams | None = Field(
        default=None, description="lines and paragraphs of many documents, which go from all that stay"
    )
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
    repeated: RepeatedReport | None
    """what went of the documents that stay"""


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
        ways = ways_over(spark, groups, earlier / INDEX, params, steps)
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
            check_breakers(found[0].sources, [part for each in found for part in each.chosen], params)
        output = DedupOutput(unique.absolute(), steps, [path for each in found for path in each.rows])
        index = NextIndex(
            unique / INDEX,
            earlier / INDEX,
            [
                (way.method, way.parameters, way.table, way.earlier, each.segments)
                for way, each in zip(ways, found, strict=True)
            ],
            output.removed,
        )
        removals = [
            Removals(way.method, [part.file for part in each.chosen])
            for way, each in zip(ways, found, strict=True)
        ]
        removed = sum(each.removed for each in found)
        written = output.write(
            spark,
            layer_parts(clean),
            removals,
            removed,
            index if params.keep_index else None,
            params.repeated,
        )
    record_lineage(unique, "dedup", params)
    shutil.rmtree(steps)
    return DedupReport(
        **written.counts(),
        records_in=sum(group.rows for group in groups),
        indexed_before=sum(segment.documents for segment in ways[0].earlier),
        exact_duplicates=written.rules[EXACT_RULE],
        near_duplicates=sum(written.rules[way.method.rule] for way in ways),
        candidate_pairs=sum(each.candidates for each in found),
        verified_pairs=sum(each.verified for each in found),
        largest_cluster=max(part.cluster for each in found for part in each.chosen),
        rounds=max(each.rounds for each in found),
        repeated=written.repeated,
    )


if __name__ == "__main__":
    run_as_stage(dedup)
