"""N-gram models trained on the sources that the user trusts, before anything is scored."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, model_validator

from tasks.corpus.scoring.scorer import extracted, languages_of
from tasks.corpus.scoring.segments import segment_words
from tasks.stage import StageError, StageParams

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


class PerplexityParams(StageParams):
    """Interpolated Kneser-Ney models, one for each language of the trusted sources; or a model directory."""

    trusted_sources: list[str] = Field(
        default=[], description="sources whose text is what text should be like"
    )
    order: int = Field(default=3, ge=2, le=5, description="words of the longest n-gram")
    minimum_count: int = Field(default=2, ge=1, description="rarer words are one unknown word")
    minimum_words: int = Field(default=20_000, ge=1, description="a language with fewer has no model")
    max_words: int = Field(
        default=5_000_000, ge=1, lt=2**29, description="trusted words of a language that are used"
    )
    model: str | None = Field(
        default=None, description="a model directory that scores instead of n-grams of trusted sources"
    )
    model_tokens: int = Field(default=512, ge=2, description="tokens of a document that the model scores")

    @model_validator(mode="after")
    def _one_kind(self) -> PerplexityParams:
        if bool(self.trusted_sources) == (self.model is not None):
            raise ValueError("name either `trusted_sources` or a `model`")
        return self


def train_on_trusted(documents: DataFrame, params: PerplexityParams, directory: Path) -> dict[str, int]:
    """Train and save the models; returns the trusted words behind those of each language.

    What comes to the driver is at most ``max_words`` of each language from each partition, and no text.

    Raises:
        StageError: if a trusted source has no documents, or no language has enough words.
    """
    from tasks.corpus.perplexity.cross_fitting import save_models, train_languages
    from tasks.corpus.perplexity.trusted_words import TrustedWords, merge_trusted

    there = {row["source"] for row in documents.select("source").distinct().collect()}
    for name in params.trusted_sources:
        if name not in there:
            raise StageError(
                f"score.perplexity.trusted_sources: there is no source `{name}`; "
                f"there are {', '.join(sorted(there))}"
            )
    trusted = documents.where(documents["source"].isin(params.trusted_sources))
    samples: dict[str, TrustedWords] = {}
    sampled = trusted.mapInArrow(_sampled(params.max_words), "language string, sample binary")
    for row in sampled.toLocalIterator():
        part = pickle.loads(row["sample"])
        known = [samples[row["language"]]] if row["language"] in samples else []
        samples[row["language"]] = merge_trusted([*known, part], max_words=params.max_words)
    models = train_languages(
        samples, order=params.order, minimum_count=params.minimum_count, minimum_words=params.minimum_words
    )
    if not models:
        counts = ", ".join(f"{language}: {sample.words}" for language, sample in sorted(samples.items()))
        raise StageError(
            f"score.perplexity: no language has {params.minimum_words} trusted words in both halves "
            f"({counts}); "
            "trust more sources or lower minimum_words"
        )
    save_models(models, directory)
    return {language: samples[language].words for language in sorted(models)}


def _sampled(max_words: int) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """The sample of every language in a partition."""

    def sampled(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        from tasks.corpus.perplexity.trusted_words import TrustedWords, merge_trusted, trusted_words

        samples: dict[str, TrustedWords] = {}
        for batch in batches:
            texts = extracted(batch)
            languages, _ = languages_of(texts, batch.column("kind").to_pylist())
            found = trusted_words(segment_words(pa.array(texts, pa.string())), languages, max_words=max_words)
            for language, sample in found.items():
                known = [samples[language]] if language in samples else []
                samples[language] = merge_trusted([*known, sample], max_words=max_words)
        yield pa.RecordBatch.from_pydict(
            {
                "language": pa.array(list(samples), pa.string()),
                "sample": pa.array([pickle.dumps(sample) for sample in samples.values()], pa.binary()),
            }
        )

    return sampled
