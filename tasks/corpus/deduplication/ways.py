"""Which methods go over the documents, one after the other, and what an index must share with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from tasks.corpus.deduplication.index import TABLE, earlier_segments, read_index
from tasks.corpus.deduplication.method import Method
from tasks.corpus.deduplication.minhash_method import MinHashMethod
from tasks.corpus.deduplication.segments import Segment
from tasks.corpus.deduplication.semantic_method import SemanticParams, semantic_method
from tasks.corpus.deduplication.similarity import Measure
from tasks.corpus.deduplication.tfidf_method import TfidfMethod, TfidfParams, count_documents
from tasks.parameters import StageParams
from tasks.row_groups import RowGroup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class MethodParams(StageParams):
    """What counts as alike. 14 bands of 8 rows find a pair of Jaccard 0.8 with probability 0.92."""

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
    tfidf: TfidfParams | None = Field(default=None, description="a second pass, by the cosine of word counts")
    semantic: SemanticParams | None = Field(default=None, description="a last pass, by a model's embeddings")


@dataclass(frozen=True)
class Way:
    """A method on its way over the documents.

    Attributes:
        method: how documents are compared.
        parameters: on what its features and keys depend: an index of others is refused.
        earlier: the documents of an earlier index.
        table: a file that the method needs, and a later month as well.
    """

    method: Method
    parameters: dict[str, Any]
    earlier: Sequence[Segment]
    table: Path | None = None


def ways_over(
    spark: SparkSession, groups: Sequence[RowGroup], index: Path, params: MethodParams, steps: Path
) -> list[Way]:
    """The methods in their order, each with the earlier documents of the folder ``index``.

    Raises:
        StageError: the index is damaged or of other parameters; a model is not the one that is meant.
    """
    minhash = MinHashMethod(
        params.shingle_words, params.bands, params.rows, params.seed, params.measure, params.min_similarity
    )
    names = ("shingle_words", "bands", "rows", "seed")
    ways = [_way(spark, index, minhash, {name: getattr(params, name) for name in names})]
    if params.tfidf is not None:
        ways.append(_tfidf(spark, groups, index, params.tfidf, steps))
    if params.semantic is not None:
        method = semantic_method(params.semantic)
        wanted = params.semantic.model_dump(include={"bands", "bits", "seed", "tokens", "longer"})
        ways.append(_way(spark, index, method, wanted | {"model_digest": method.digest}))
    return ways


def _way(
    spark: SparkSession, index: Path, method: Method, parameters: dict[str, Any], table: Path | None = None
) -> Way:
    return Way(method, parameters, earlier_segments(spark, index, method, parameters), table)


def _tfidf(
    spark: SparkSession, groups: Sequence[RowGroup], index: Path, params: TfidfParams, steps: Path
) -> Way:
    """A later month weighs words as the first did: only so are its vectors those of the index."""
    before = read_index(index)
    held = before.methods.get("tfidf") if before else None
    if held is None:
        table, documents = count_documents(spark, groups, steps), sum(group.rows for group in groups)
    else:
        table, documents = (index / "tfidf" / TABLE).absolute(), held.parameters.get("documents", 0)
    method = TfidfMethod(table, documents, params.min_cosine)
    return _way(spark, index, method, {"min_cosine": params.min_cosine, "documents": documents}, table)
