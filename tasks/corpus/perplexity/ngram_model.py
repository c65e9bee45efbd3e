"""An n-gram language model over word hashes: how it is stored, and the perplexity of documents under it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.array_files import save_array
from tasks.compiled import compiled
from tasks.corpus.perplexity.ngram_table import ROW, find_row, find_rows
from tasks.stage import StageError

if TYPE_CHECKING:
    from tasks.corpus.scoring.segments import Words

BEGIN, END, UNKNOWN = 0, 1, 2
"""Where the marks stand in the rows that follow the table of words: before and after a document, unknown."""

MARKS = 3

HEADER = "model.json"


class NgramHeader(BaseModel):
    """What a model was made of."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    order: int = Field(ge=2, le=5)
    minimum_count: int = Field(ge=1)
    documents: int = Field(ge=0)
    words: int = Field(ge=1)
    known_words: int = Field(ge=0)
    rare_words: int = Field(ge=0)
    """Distinct words seen less than ``minimum_count`` times, which the unknown word stands for."""
    ngrams: list[int]
    """Distinct n-grams of each order; those of order 1 are the known words and the three marks."""
    discounts: list[list[float]]
    """D1, D2 and D3+ of each order."""


@dataclass(frozen=True)
class NgramModel:
    """Probabilities ready to look up: ``levels[n - 1]`` is the table of the n-grams of n words.

    A word's key is its hash. A longer n-gram's key is the row of its context, its first n − 1 words, in the
    level below, plus 1, times 2^32, plus the row of its last word: exact, whatever the order. An n-gram that
    is missing has the probability of the one without its first word, times the back-off of its context.
    """

    header: NgramHeader
    levels: tuple[np.ndarray, ...]

    @property
    def vocabulary(self) -> int:
        """Words that the model tells apart and between which it shares all probability, the end included."""
        return self.header.known_words + 1 + max(1, self.header.rare_words)


def score(model: NgramModel, words: Words) -> np.ndarray:
    """The perplexity of each document, perplexities_D: exp(−Σ ln p(word | words before it) / words).

    The end of the document is not scored. A word that the model does not know has its part of the unknown
    word's probability, shared equally among the rare words that this stands for: else a text of nothing but
    unknown words would be a likely one. NaN for a document without words.
    """
    log_p_W = log_probabilities(model, words.hashes_W, words.offsets_D1)
    return perplexities(log_p_W, words.offsets_D1)


def log_probabilities(model: NgramModel, hashes_W: np.ndarray, offsets_D1: np.ndarray) -> np.ndarray:
    """ln p of every word, given the words before it in its document: log_p_W, fp32."""
    unigrams = model.levels[0]
    marks = len(unigrams) - MARKS
    hashes_W = np.where(hashes_W == 0, np.uint64(1), hashes_W)  # 0 marks an empty row
    words_W = find_rows(unigrams, marks - 1, hashes_W, marks + UNKNOWN)
    log_p_W = unigrams["log_probability"][words_W]
    starts_D = offsets_D1[:-1][np.diff(offsets_D1) > 0]
    shorter_W = words_W
    for n in range(2, model.header.order + 1):
        before_begin = marks + BEGIN if n == 2 else -1
        contexts_W = np.empty_like(shorter_W)
        contexts_W[1:] = shorter_W[:-1]
        contexts_W[starts_D] = before_begin
        shorter_W = _lengthened(
            model.levels[n - 2], model.levels[n - 1], contexts_W, words_W, shorter_W, log_p_W
        )
    log_p_W[words_W == marks + UNKNOWN] -= np.float32(np.log(max(1, model.header.rare_words)))
    return log_p_W


@compiled()
def perplexities(log_p_W: np.ndarray, offsets_D1: np.ndarray) -> np.ndarray:
    """exp of the mean negative log probability of each document's words, perplexities_D, fp64."""
    perplexities_D = np.empty(len(offsets_D1) - 1, dtype=np.float64)
    for document in range(len(perplexities_D)):
        first, last = offsets_D1[document], offsets_D1[document + 1]
        total = 0.0
        for index in range(first, last):
            total += np.float64(log_p_W[index])
        perplexities_D[document] = np.exp(-total / (last - first)) if last > first else np.nan
    return perplexities_D


def save_ngram_model(model: NgramModel, directory: Path) -> None:
    """Write ``model.json`` and one array ``1.npy`` … for each order. The same model gives the same bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    for n, rows_S in enumerate(model.levels, 1):
        with (directory / f"{n}.npy").open("wb") as file:
            save_array(file, rows_S)
    (directory / HEADER).write_text(model.header.model_dump_json(indent=2) + "\n", "utf-8")


def load_ngram_model(directory: Path) -> NgramModel:
    """Open a model; its tables are mapped, not read, so that all workers of a machine share one copy.

    Raises:
        StageError: if a file is missing or does not hold what it should.
    """
    path = directory / HEADER
    try:
        header = NgramHeader.model_validate_json(path.read_bytes())
        levels: Sequence[np.ndarray] = []
        for n in range(1, header.order + 1):
            path = directory / f"{n}.npy"
            levels.append(_checked(np.asarray(np.load(path, mmap_mode="r")), MARKS if n == 1 else 0))
    except FileNotFoundError:
        raise StageError(
            f"{path}: no such file; an n-gram model is a folder with {HEADER} and 1.npy …"
        ) from None
    except (ValidationError, ValueError, OSError, EOFError) as error:
        raise StageError(f"{path}: not part of an n-gram model ({error})") from error
    return NgramModel(header, tuple(levels))


def _checked(rows_S: np.ndarray, extra: int) -> np.ndarray:
    capacity = len(rows_S) - extra
    if rows_S.dtype != ROW or capacity < 1 or capacity & (capacity - 1):
        raise ValueError(f"{len(rows_S)} rows of {rows_S.dtype} are no table")
    return rows_S


@compiled()
def _lengthened(
    below_S: np.ndarray,
    level_S: np.ndarray,
    contexts_W: np.ndarray,
    words_W: np.ndarray,
    shorter_W: np.ndarray,
    log_p_W: np.ndarray,
) -> np.ndarray:
    """Bring log_p_W from the n-grams of the level below, shorter_W, to those one word longer; their rows.

    One level for all words at a time: the look-ups do not wait for each other.
    """
    mask = len(level_S) - 1
    longer_W = np.empty_like(shorter_W)
    for index in range(len(words_W)):
        context = contexts_W[index]
        row = -1
        if context >= 0:
            if shorter_W[index] >= 0:
                key = (np.uint64(context + 1) << np.uint64(32)) | np.uint64(words_W[index])
                row = find_row(level_S, mask, key)
            if row >= 0:
                log_p_W[index] = level_S[row]["log_probability"]
            else:
                log_p_W[index] += below_S[context]["log_backoff"]
        longer_W[index] = row
    return longer_W
