"""Training of n-gram models: interpolated modified Kneser-Ney smoothing.

Chen and Goodman, An Empirical Study of Smoothing Techniques for Language Modeling, 1999, section 3; computed
as Heafield et al., Scalable Modified Kneser-Ney Language Model Estimation, 2013, section 3, does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.perplexity.ngram_model import BEGIN, END, MARKS, UNKNOWN, NgramHeader, NgramModel
from tasks.corpus.perplexity.ngram_table import build_table, find_rows
from tasks.corpus.perplexity.trusted_words import TrustedWords

FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
"""Where a text is too small to estimate them (KenLM's ``--discount_fallback``)."""


def train(trusted: TrustedWords, *, order: int = 3, minimum_count: int = 2) -> NgramModel:
    """A model of ``order`` words from counts alone.

    Words seen less than ``minimum_count`` times are one unknown word. A document is one sequence between two
    marks; n-grams do not reach over its ends. Lower orders count the distinct words before an n-gram, n-grams
    at the beginning of a document their occurrences. The single word is interpolated with the uniform
    distribution over known words, unknown word and end.

    Raises:
        ValueError: if there is no word.
    """
    if not trusted.words:
        raise ValueError("a model needs at least one word of trusted text")
    hashes_W = np.where(trusted.hashes_W == 0, np.uint64(1), trusted.hashes_W)
    distinct_V, counts_V = _counted(hashes_W)
    known_V = distinct_V[counts_V >= minimum_count]
    unigrams = build_table(known_V, extra_rows=MARKS)
    marks = len(unigrams) - MARKS
    words_W = find_rows(unigrams, marks - 1, hashes_W, marks + UNKNOWN)
    tokens_T = _with_ends(words_W, trusted.offsets_D1, marks + BEGIN, marks + END)
    levels = [_Level(unigrams, np.bincount(tokens_T, minlength=len(unigrams)), None)]
    rows_T = tokens_T
    for _ in range(2, order + 1):
        keys_T = _keys(rows_T, tokens_T, marks + BEGIN)
        keys_K, counts_K = _counted(keys_T[keys_T != 0])
        table = build_table(keys_K)
        longer_T = find_rows(table, len(table) - 1, keys_T, -1)
        suffixes_S = np.full(len(table), -1, dtype=np.int32)
        suffixes_S[longer_T[longer_T >= 0]] = rows_T[longer_T >= 0]
        counts_S = np.zeros(len(table), dtype=np.int64)
        counts_S[find_rows(table, len(table) - 1, keys_K, -1)] = counts_K
        levels.append(_Level(table, counts_S, suffixes_S))
        rows_T = longer_T
    discounts = _smooth(levels, len(known_V) + 2)
    for level in levels:
        level.rows_S.flags.writeable = False
    header = NgramHeader(
        order=order,
        minimum_count=minimum_count,
        documents=len(trusted.priorities_D),
        words=trusted.words,
        known_words=len(known_V),
        rare_words=len(distinct_V) - len(known_V),
        ngrams=[len(known_V) + MARKS, *(int(np.count_nonzero(level.counts_S)) for level in levels[1:])],
        discounts=[[round(float(value), 6) for value in row] for row in discounts],
    )
    return NgramModel(header, tuple(level.rows_S for level in levels))


@dataclass(frozen=True)
class _Level:
    """The n-grams of one order by row: how often each occurs, and the row below of all but its first word."""

    rows_S: np.ndarray
    counts_S: np.ndarray
    suffixes_S: np.ndarray | None


def _smooth(levels: list[_Level], vocabulary: int) -> list[np.ndarray]:
    """Fill in probabilities and back-offs, lowest order first; the discounts of each order."""
    found: list[np.ndarray] = []
    below_S = np.empty(0)
    for index, level in enumerate(levels):
        counts_S = _adjusted(level, levels[index + 1] if index + 1 < len(levels) else None)
        if index == 0:
            counts_S[len(counts_S) - MARKS + BEGIN] = 0  # it is never what follows
        discounts = _discounts(counts_S)
        discount_S = np.concatenate([[0.0], discounts])[np.minimum(counts_S, 3)]
        if level.suffixes_S is None:
            total = counts_S.sum()
            below_S = (counts_S - discount_S + discount_S.sum() / vocabulary) / total
            filled = (level.rows_S["key"] != 0) | (np.arange(len(below_S)) >= len(below_S) - MARKS + END)
        else:
            filled = counts_S > 0
            contexts_K = (level.rows_S["key"][filled] >> np.uint64(32)).astype(np.int64) - 1
            below_S = _interpolated(levels[index - 1], level, below_S, counts_S, discount_S, contexts_K)
        level.rows_S["log_probability"][filled] = np.log(below_S[filled])
        found.append(discounts)
    return found


def _interpolated(
    shorter: _Level,
    level: _Level,
    below_S: np.ndarray,
    counts_S: np.ndarray,
    discount_S: np.ndarray,
    contexts_K: np.ndarray,
) -> np.ndarray:
    """p(w | h) = (a(hw) − D) / Σ a(h·) + γ(h) p(w | h without its first word); γ(h) is h's back-off."""
    assert level.suffixes_S is not None
    filled = counts_S > 0
    totals_C = np.bincount(contexts_K, counts_S[filled], minlength=len(shorter.rows_S))
    saved_C = np.bincount(contexts_K, discount_S[filled], minlength=len(shorter.rows_S))
    continued = totals_C > 0
    backoffs_C = np.ones(len(totals_C))
    backoffs_C[continued] = saved_C[continued] / totals_C[continued]
    shorter.rows_S["log_backoff"] = np.log(backoffs_C)
    probabilities_S = np.zeros(len(counts_S))
    probabilities_S[filled] = (counts_S[filled] - discount_S[filled]) / totals_C[contexts_K]
    probabilities_S[filled] += backoffs_C[contexts_K] * below_S[level.suffixes_S[filled]]
    return probabilities_S


def _adjusted(level: _Level, longer: _Level | None) -> np.ndarray:
    """How many distinct words precede each n-gram; how often it occurs where none does, or at the top."""
    if longer is None:
        return level.counts_S
    assert longer.suffixes_S is not None
    preceded_S = np.bincount(longer.suffixes_S[longer.suffixes_S >= 0], minlength=len(level.counts_S))
    return np.where(preceded_S > 0, preceded_S, level.counts_S)


def _discounts(counts_S: np.ndarray) -> np.ndarray:
    """D1, D2, D3+ by Chen and Goodman's formula, from how many n-grams are counted once … four times."""
    n1, n2, n3, n4 = (int(np.count_nonzero(counts_S == times)) for times in (1, 2, 3, 4))
    if not (n1 and n2 and n3):
        return np.array(FALLBACK_DISCOUNTS)
    y = n1 / (n1 + 2 * n2)
    discounts = np.array([1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3])
    # Nothing saved, or more than there is, would be no smoothing or no probability.
    if (discounts <= 0).any() or (discounts > (1, 2, 3)).any():
        return np.array(FALLBACK_DISCOUNTS)
    return discounts


def _counted(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct keys, ascending, and how often each occurs."""
    ordered = np.sort(keys)
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    return ordered[firsts], np.diff(firsts, append=len(ordered))


@compiled()
def _with_ends(words_W: np.ndarray, offsets_D1: np.ndarray, begin: int, end: int) -> np.ndarray:
    documents = len(offsets_D1) - 1
    tokens_T = np.empty(len(words_W) + 2 * documents, dtype=np.int32)
    for document in range(documents):
        first, last = offsets_D1[document], offsets_D1[document + 1]
        start = first + 2 * document
        tokens_T[start] = begin
        tokens_T[start + 1 : start + 1 + last - first] = words_W[first:last]
        tokens_T[start + 1 + last - first] = end
    return tokens_T


@compiled()
def _keys(rows_T: np.ndarray, tokens_T: np.ndarray, begin: int) -> np.ndarray:
    """The key of the n-gram that ends at each token, one word longer than in rows_T; 0 where none does."""
    keys_T = np.zeros(len(tokens_T), dtype=np.uint64)
    for index in range(1, len(tokens_T)):
        context = rows_T[index - 1]
        if tokens_T[index] != begin and context >= 0:
            keys_T[index] = (np.uint64(context + 1) << np.uint64(32)) | np.uint64(tokens_T[index])
    return keys_T
