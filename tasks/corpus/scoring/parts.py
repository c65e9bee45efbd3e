"""What is measured of a text, part by part: each names its signals and returns a column for each.

A part is built once in a worker and asked for a batch at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from tasks.corpus.pii.find import KINDS, find_personal_data
from tasks.corpus.pii.mask import count
from tasks.corpus.scoring.measure import SIGNALS, measure
from tasks.corpus.scoring.segments import Words, segment_words
from tasks.records import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from tasks.corpus.decontamination.index import ContaminationIndex
    from tasks.corpus.lexicons.matching import Lexicons
    from tasks.corpus.perplexity.cross_fitting import CrossFitted

LEXICON_SIGNAL = "lexicon_{}_rate"
"""Hits of a list in 1,000 words."""

PERSONAL_DATA_SIGNALS = tuple(f"pii_{kind}" for kind in KINDS)

FIXED_SIGNALS = (
    *SIGNALS,
    *PERSONAL_DATA_SIGNALS,
    "replaced_characters",
    "toxicity",
    "perplexity",
    "contamination",
    "language_score",
)
"""Every signal there may be, but for those of word lists."""


@dataclass(frozen=True)
class Batch:
    """Extracted texts with their languages; what several parts need of them is made once."""

    array: pa.StringArray
    languages: Sequence[str]
    findings: list[list[Finding]]
    """what goes to the ledger of each document besides its signals; parts add to it"""

    @cached_property
    def texts(self) -> list[str]:
        """The texts as Python has them."""
        return cast("list[str]", self.array.to_pylist())

    @cached_property
    def words(self) -> Words:
        """The words of all texts."""
        return segment_words(self.array)


class Part(Protocol):
    """Measures some signals of a batch of D texts."""

    @property
    def names(self) -> Sequence[str]:
        """The signals, one for each column."""
        ...

    def score(self, batch: Batch) -> np.ndarray:
        """The signals, float64 of shape (D, len(names)); NaN where one cannot be measured."""
        ...


class TextMeasures:
    """Words, lines, repetition: Gopher, C4, FineWeb."""

    names = SIGNALS

    def score(self, batch: Batch) -> np.ndarray:
        """See `measure`."""
        return measure(batch.array, batch.languages)


class PersonalData:
    """How many addresses, numbers and keys of each kind there are; their values go nowhere."""

    names = PERSONAL_DATA_SIGNALS

    def score(self, batch: Batch) -> np.ndarray:
        """Counts by kind."""
        counts_DK = np.zeros((len(batch.texts), len(KINDS)))
        for row, text in zip(counts_DK, batch.texts, strict=True):
            found = find_personal_data(text)
            if found:
                by_kind = count(found)
                row[:] = [by_kind[kind] for kind in KINDS]
        return counts_DK


@dataclass(frozen=True)
class ListedWords:
    """Hits of word lists in 1,000 words; a list that does not apply to a language is not measured there."""

    lists: Sequence[str]
    lexicons: Lexicons

    @property
    def names(self) -> Sequence[str]:
        """One for each list."""
        return [LEXICON_SIGNAL.format(name) for name in self.lists]

    def score(self, batch: Batch) -> np.ndarray:
        """Rates by list."""
        rates_DL = np.zeros((len(batch.texts), len(self.lists)))
        words_D = np.maximum(1, np.diff(batch.words.offsets_D1))
        for document, (text, language) in enumerate(zip(batch.texts, batch.languages, strict=True)):
            applying = self.lexicons.applying(language)
            rates_DL[document] = [0.0 if name in applying else np.nan for name in self.lists]
            for hit in self.lexicons.hits(text, language) if applying else ():
                rates_DL[document, self.lists.index(hit.lexicon)] += 1000 / words_D[document]
        return rates_DL


class Toxicity:
    """How toxic a text reads, where the classifier knows the language."""

    names = ("toxicity",)

    def score(self, batch: Batch) -> np.ndarray:
        """See `passage_toxicity`."""
        from tasks.corpus.toxicity import LANGUAGES, passage_toxicity

        scores_D1 = np.full((len(batch.texts), 1), np.nan)
        known = [number for number, language in enumerate(batch.languages) if language in LANGUAGES]
        scores_D1[known, 0] = passage_toxicity([batch.texts[number] for number in known])
        return scores_D1


@dataclass(frozen=True)
class NgramPerplexity:
    """Perplexity under models of trusted sources, by language."""

    models: Mapping[str, CrossFitted]
    names = ("perplexity",)

    def score(self, batch: Batch) -> np.ndarray:
        """See `cross_fitting.score`."""
        from tasks.corpus.perplexity.cross_fitting import score

        return score(self.models, batch.words, batch.languages)[:, None]


class ModelPerplexity:
    """Perplexity of the first tokens under a language model."""

    names = ("perplexity",)

    def __init__(self, directory: Path, tokens: int) -> None:
        from tasks.corpus.perplexity.language_model import load_language_model

        self._model = load_language_model(directory, tokens=tokens)

    def score(self, batch: Batch) -> np.ndarray:
        """See `language_model.score`."""
        from tasks.corpus.perplexity.language_model import score

        return score(self._model, batch.texts)[:, None]


@dataclass(frozen=True)
class Contaminations:
    """The largest share of an evaluation item that a document contains."""

    index: ContaminationIndex
    names = ("contamination",)

    def score(self, batch: Batch) -> np.ndarray:
        """Overlaps; 0 where a document contains no item. The item and its span go to the findings."""
        from tasks.corpus.decontamination.contamination import find_contamination

        overlaps_D1 = np.zeros((len(batch.findings), 1))
        for document, item in enumerate(find_contamination(self.index, batch.words, batch.array)):
            if item is not None:
                overlaps_D1[document] = item.overlap
                batch.findings[document].append(Finding("contamination", item.overlap, None, str(item)))
        return overlaps_D1
