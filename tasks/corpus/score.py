"""Raw documents in, scored ones out: their text, its language, and every signal, measured once.

Nothing is decided here: `clean` decides on the signals, and does so again without measuring again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from tasks.corpus.decontamination.evaluation_sets import EvaluationItem, EvaluationSet, read_evaluation_sets
from tasks.corpus.decontamination.index import (
    ContaminationIndex,
    OverlapParams,
    answer_texts,
    build_index,
    question_texts,
)
from tasks.corpus.lexicons.lists import Lexicon, LexiconParams, read_lexicon
from tasks.corpus.scoring.parts import (
    Contaminations,
    ListedWords,
    ModelPerplexity,
    NgramPerplexity,
    Part,
    PersonalData,
    TextMeasures,
    Toxicity,
)
from tasks.corpus.scoring.scorer import Scorer
from tasks.corpus.scoring.segments import segment_words
from tasks.corpus.scoring.trusted import PerplexityParams, train_on_trusted
from tasks.layer_files import read_documents
from tasks.records import (
    DOCUMENT_COLUMNS,
    JUDGEMENT_COLUMNS,
    DocumentReport,
    carry_lineage,
    schema,
    write_layer,
)
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageParams, run_as_stage, stage

if TYPE_CHECKING:
    import pyarrow


class ScoreParams(StageParams):
    """What is measured of a document."""

    toxicity: bool = Field(default=True, description="whether a classifier scores English text")
    lexicons: list[LexiconParams] = Field(default=[], description="word lists whose hits are counted")
    perplexity: PerplexityParams | None = Field(
        default=None, description="under what perplexity is measured; empty: it is not"
    )
    evaluation_sets: list[EvaluationSet] = Field(
        default=[], description="sets whose items are looked for in the documents"
    )
    overlap: OverlapParams = Field(default=OverlapParams(), description="what counts as containing an item")

    @field_validator("lexicons")
    @classmethod
    def _names_differ(cls, lists: list[LexiconParams]) -> list[LexiconParams]:
        names = [given.name for given in lists]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"every list needs a name of its own; used twice: {', '.join(twice)}")
        return lists


class ScoreReport(DocumentReport):
    """What was scored."""

    contaminated: int
    """documents that contain an evaluation item"""
    perplexity_models: dict[str, int]
    """words of trusted text behind the models of each language"""


@stage
def score(
    raw: Input, lexicons: Input, evaluation: Input, scored: Output, params: ScoreParams, resources: Resources
) -> ScoreReport:
    """Extract the text of every document, find its language, and measure all signals.

    ``lexicons`` and ``evaluation`` are the folders of the word lists and of the evaluation sets.

    Raises:
        StageError: if a list, a set or a model cannot be read, or no trusted source is there.
    """
    _perplexity_of_model(params)  # here first: what a worker tells is a traceback of Spark's
    lists = [read_lexicon(given, lexicons) for given in params.lexicons]
    items = read_evaluation_sets(params.evaluation_sets, evaluation)
    index = _index(items, params.overlap) if items else None
    carry_lineage(raw, scored)
    with spark_session("score", resources) as spark:
        documents = read_documents(spark, raw)
        models, trained = None, {}
        if params.perplexity is not None and params.perplexity.trusted_sources:
            models = scored / "perplexity"
            trained = train_on_trusted(documents, params.perplexity, models)
        spread = documents.repartition(spark.sparkContext.defaultParallelism * 4)
        made_of = _Parts(lists, index, models, params)
        rows = spread.mapInArrow(_scored(made_of), schema(DOCUMENT_COLUMNS | JUDGEMENT_COLUMNS))
        counts = write_layer(rows, scored, "score", params)
        contaminated = spark.read.parquet(str(scored / "ledger")).where("rule = 'contamination'").count()
    return ScoreReport(**counts, contaminated=contaminated, perplexity_models=trained)


def _index(items: Sequence[EvaluationItem], overlap: OverlapParams) -> ContaminationIndex:
    import pyarrow as pa

    questions, answers = (
        pa.array(texts, pa.string()) for texts in (question_texts(items), answer_texts(items))
    )
    return build_index(items, segment_words(questions), segment_words(answers), overlap)


@dataclass(frozen=True)
class _Parts:
    """What parts are made of; they are made in the workers, where some of them open files."""

    lists: list[Lexicon]
    index: ContaminationIndex | None
    models: Path | None
    params: ScoreParams

    def make(self) -> list[Part]:
        from tasks.corpus.lexicons.matching import Lexicons
        from tasks.corpus.perplexity.cross_fitting import load_models

        parts: list[Part] = [TextMeasures(), PersonalData()]
        if self.lists:
            parts.append(ListedWords([given.params.name for given in self.lists], Lexicons(self.lists)))
        if self.params.toxicity:
            parts.append(Toxicity())
        if self.models is not None:
            parts.append(NgramPerplexity(load_models(self.models)))
        elif (of_model := _perplexity_of_model(self.params)) is not None:
            parts.append(of_model)
        if self.index is not None:
            parts.append(Contaminations(self.index))
        return parts


def _perplexity_of_model(params: ScoreParams) -> ModelPerplexity | None:
    """Perplexity under a model directory, if one is named.

    Raises:
        StageError: if it cannot be read.
    """
    if params.perplexity is None or params.perplexity.model is None:
        return None
    return ModelPerplexity(Path(params.perplexity.model), params.perplexity.model_tokens)


def _scored(made_of: _Parts) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Scores the batches of a partition, in a worker."""

    def scored(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        scorer = Scorer(made_of.make())
        for batch in batches:
            yield scorer.score(batch)

    return scored


if __name__ == "__main__":
    run_as_stage(score)
