"""Two n-gram models for each language, so that no document is scored by a model that has read it.

The trusted documents are usually part of the corpus, and under a model that was trained on them their
perplexity says nothing but that. Therefore each document, trusted or not, belongs to one of two halves, by a
hash of its words, and is scored by the model that was trained on the trusted documents of the other half
(cross-fitting: Chernozhukov et al., Double/Debiased Machine Learning, 2018, section 1.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.perplexity.kneser_ney import train
from tasks.corpus.perplexity.ngram_model import (
    NgramModel,
    load_ngram_model,
    log_probabilities,
    perplexities,
    save_ngram_model,
)
from tasks.corpus.perplexity.trusted_words import TrustedWords, folds, gather, priorities
from tasks.stage import StageError

if TYPE_CHECKING:
    from tasks.corpus.scoring.segments import Words

FOLDS = (0, 1)


@dataclass(frozen=True)
class CrossFitted:
    """``by_fold[k]`` scores the documents of fold k and has not read the trusted ones among them."""

    by_fold: tuple[NgramModel, NgramModel]


def train_languages(
    trusted: Mapping[str, TrustedWords], *, order: int = 3, minimum_count: int = 2, minimum_words: int
) -> dict[str, CrossFitted]:
    """Models of each language whose halves have ``minimum_words`` words each; of the others none."""
    models = {}
    for language, sample in sorted(trusted.items()):
        halves = [sample.fold(1 - fold) for fold in FOLDS]
        if all(half.words >= max(1, minimum_words) for half in halves):
            first, second = (train(half, order=order, minimum_count=minimum_count) for half in halves)
            models[language] = CrossFitted((first, second))
    return models


def score(models: Mapping[str, CrossFitted], words: Words, languages: Sequence[str | None]) -> np.ndarray:
    """The perplexity of each document under its language's model of the other half, perplexities_D.

    As `tasks.corpus.perplexity.ngram_model.score` has it; NaN for a document without words and for one of a
    language without a model.
    """
    perplexities_D = np.full(len(languages), np.nan)
    folds_D = folds(priorities(words))
    names_D = np.array([language or "" for language in languages], dtype=object)
    lengths_D = np.diff(words.offsets_D1)
    for language, fitted in models.items():
        for fold, model in zip(FOLDS, fitted.by_fold, strict=True):
            chosen = np.flatnonzero((names_D == language) & (folds_D == fold))
            offsets_D1 = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths_D[chosen])])
            hashes_W = gather(words.hashes_W, words.offsets_D1[chosen], offsets_D1)
            log_p_W = log_probabilities(model, hashes_W, offsets_D1)
            perplexities_D[chosen] = perplexities(log_p_W, offsets_D1)
    return perplexities_D


def save_models(models: Mapping[str, CrossFitted], directory: Path) -> None:
    """Write one folder for each language and fold, ``<language>/<fold>``."""
    directory.mkdir(parents=True, exist_ok=True)
    for language, fitted in models.items():
        for fold, model in zip(FOLDS, fitted.by_fold, strict=True):
            save_ngram_model(model, directory / language / str(fold))


def load_models(directory: Path) -> dict[str, CrossFitted]:
    """Open the models of all languages; the tables are mapped, not read.

    Raises:
        StageError: if there is no such folder, or if a file is missing or does not hold what it should.
    """
    if not directory.is_dir():
        raise StageError(f"{directory}: no such folder of n-gram models")
    models = {}
    for folder in sorted(path for path in directory.iterdir() if path.is_dir()):
        first, second = (load_ngram_model(folder / str(fold)) for fold in FOLDS)
        models[folder.name] = CrossFitted((first, second))
    return models
