"""The n-grams of evaluation questions, in tables that a compiled loop looks words up in.

Equal questions, whatever their case, punctuation and white space, are one question with the answers of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, model_validator

from tasks.compiled import compiled
from tasks.corpus.decontamination.evaluation_sets import EvaluationItem
from tasks.corpus.scoring.hashing import START, capacity_for, extended
from tasks.parameters import StageParams

if TYPE_CHECKING:
    from tasks.corpus.scoring.segments import Words


class OverlapParams(StageParams):
    """What counts as an occurrence of an evaluation item."""

    ngram_words: int = Field(default=13, ge=2, le=64)
    """words of an n-gram (Brown et al., GPT-3, 2020, appendix C)"""
    minimum_words: int = Field(default=8, ge=2)
    """a question of fewer than ``ngram_words`` words is one n-gram; one of fewer than these is not sought"""
    minimum_overlap: float = Field(default=0.8, gt=0, le=1)
    """share of a question's n-grams from which a document contains it (Touvron et al., Llama 2, 2023, A.6)"""
    minimum_overlap_with_answer: float = Field(default=0.5, gt=0, le=1)
    """the same where one of its answers is near"""
    answer_distance: int = Field(default=50, ge=0)
    """words between the question's n-grams and an answer that is near"""
    maximum_items: int = Field(default=10, ge=1)
    """an n-gram of more different questions than these is boilerplate and does not count"""

    @model_validator(mode="after")
    def _fits(self) -> OverlapParams:
        if self.minimum_words > self.ngram_words:
            raise ValueError("minimum_words must not be more than ngram_words")
        return self


@dataclass(frozen=True)
class ContaminationIndex:
    """Q questions, their n-grams, and P postings: which question holds which n-gram."""

    params: OverlapParams
    keys_S: np.ndarray
    """open addressing: hash of an n-gram, 0 where empty"""
    first_postings_S: np.ndarray
    posting_counts_S: np.ndarray
    questions_P: np.ndarray
    prefixes: np.ndarray
    """a bit for the hash of the first ``minimum_words`` of each n-gram: most text has none of them"""
    sizes: np.ndarray
    """of each number of words up to ``ngram_words``, whether there are n-grams of it"""
    ngrams_Q: np.ndarray
    """how many n-grams count for each question"""
    words_Q: np.ndarray
    items_Q: tuple[tuple[str, int], ...]
    """the set and the line of the question's first item"""
    answers_Q1: np.ndarray
    """the answers of question q are those from ``answers_Q1[q]`` to ``answers_Q1[q + 1]``"""
    answer_hashes_A: np.ndarray
    answer_words_A: np.ndarray
    not_looked_for: dict[str, int]
    """items of each set whose question is too short, or of nothing but boilerplate"""


def build_index(
    items: Sequence[EvaluationItem], questions: Words, answers: Words, params: OverlapParams
) -> ContaminationIndex:
    """The index of all items.

    ``questions`` are the words of `question_texts`, ``answers`` those of `answer_texts`.
    """
    hashes_W, offsets_I1 = _sought(items, questions, answers, params.minimum_words)
    question_of_item, representative_Q = _distinct(hashes_W, offsets_I1)
    lengths_Q = np.diff(offsets_I1)[representative_Q]
    hashes_N, questions_N, prefixes = _question_ngrams(
        hashes_W,
        offsets_I1[:-1][representative_Q],
        lengths_Q,
        params.ngram_words,
        params.minimum_words,
    )
    order = np.lexsort((questions_N, hashes_N))
    hashes_N, questions_N = hashes_N[order], questions_N[order]
    new_N = np.ones(len(hashes_N), dtype=bool)
    new_N[1:] = (hashes_N[1:] != hashes_N[:-1]) | (questions_N[1:] != questions_N[:-1])
    hashes_P, questions_P = hashes_N[new_N], questions_N[new_N]
    keys_K, firsts_K, counts_K = np.unique(hashes_P, return_index=True, return_counts=True)
    rare_K = counts_K <= params.maximum_items
    rare_P = np.repeat(rare_K, counts_K)
    ngrams_Q = np.bincount(questions_P[rare_P], minlength=len(lengths_Q))
    keys_S, first_postings_S, posting_counts_S = _table(keys_K[rare_K], firsts_K[rare_K], counts_K[rare_K])
    answers_Q1, hashes_A, words_A = _answers(items, question_of_item, len(lengths_Q), answers)
    not_looked_for = {item.set: 0 for item in items}
    for item, question in zip(items, question_of_item.tolist(), strict=True):
        not_looked_for[item.set] += int(ngrams_Q[question] == 0)
    return ContaminationIndex(
        params=params,
        keys_S=keys_S,
        first_postings_S=first_postings_S,
        posting_counts_S=posting_counts_S,
        questions_P=questions_P,
        prefixes=prefixes,
        sizes=_sizes(lengths_Q, params),
        ngrams_Q=ngrams_Q,
        words_Q=lengths_Q,
        items_Q=tuple((items[index].set, items[index].line) for index in representative_Q.tolist()),
        answers_Q1=answers_Q1,
        answer_hashes_A=hashes_A,
        answer_words_A=words_A,
        not_looked_for=not_looked_for,
    )


def question_texts(items: Sequence[EvaluationItem]) -> list[str]:
    """The question of every item."""
    return [item.question for item in items]


def answer_texts(items: Sequence[EvaluationItem]) -> list[str]:
    """The answers of all items, one after the other."""
    return [answer for item in items for answer in item.answers]


def _sought(
    items: Sequence[EvaluationItem], questions: Words, answers: Words, minimum_words: int
) -> tuple[np.ndarray, np.ndarray]:
    """The words to look for: each item's question, one that is too short alone with its first answer."""
    pieces: list[np.ndarray] = []
    answer = 0
    for number, item in enumerate(items):
        piece = questions.hashes_W[questions.offsets_D1[number] : questions.offsets_D1[number + 1]]
        if 0 < len(piece) < minimum_words and item.answers:
            first = answers.hashes_W[answers.offsets_D1[answer] : answers.offsets_D1[answer + 1]]
            piece = np.concatenate([piece, first])
        pieces.append(piece)
        answer += len(item.answers)
    offsets_I1 = np.cumsum([0, *map(len, pieces)])
    return np.concatenate([np.empty(0, dtype=np.uint64), *pieces]), offsets_I1


def _sizes(lengths_Q: np.ndarray, params: OverlapParams) -> np.ndarray:
    sizes = np.zeros(params.ngram_words + 1, dtype=bool)
    sizes[np.minimum(lengths_Q[lengths_Q >= params.minimum_words], params.ngram_words)] = True
    return sizes


def _distinct(hashes_W: np.ndarray, offsets_I1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each item its question's number, and for each question its first item."""
    hashes_I = _sequence_hashes(hashes_W, offsets_I1)
    _, first, inverse = np.unique(hashes_I, return_index=True, return_inverse=True)
    order = np.argsort(first)  # questions in the order of the items, so that equals are told apart by it
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order]


def _answers(
    items: Sequence[EvaluationItem], question_of_item: np.ndarray, questions: int, answers: Words
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct answers of each question by hash and length; answers without words are none."""
    question_of_answer = np.repeat(question_of_item, [len(item.answers) for item in items])
    hashes = _sequence_hashes(answers.hashes_W, answers.offsets_D1)
    lengths = np.diff(answers.offsets_D1)
    found = sorted(
        {
            (question, int(hashed), length)
            for question, hashed, length in zip(
                question_of_answer.tolist(), hashes.tolist(), lengths.tolist(), strict=True
            )
            if length
        }
    )
    counts_Q = np.bincount(np.array([row[0] for row in found], dtype=np.int64), minlength=questions)
    return (
        np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts_Q)]),
        np.array([row[1] for row in found], dtype=np.uint64),
        np.array([row[2] for row in found], dtype=np.int64),
    )


@compiled(inline="always")
def prefix_bit(hashed, size):
    """Where among ``size`` words of 64 bits a hash has its bit, and the bit."""
    bits = np.uint64(size * 64 - 1)
    place = (hashed >> np.uint64(20)) & bits
    return np.int64(place >> np.uint64(6)), np.uint64(1) << (place & np.uint64(63))


@compiled()
def _sequence_hashes(hashes_W, offsets_D1):
    hashes_D = np.empty(len(offsets_D1) - 1, np.uint64)
    for document in range(len(hashes_D)):
        hashed = START
        for index in range(offsets_D1[document], offsets_D1[document + 1]):
            hashed = extended(hashed, hashes_W[index])
        hashes_D[document] = hashed
    return hashes_D


@compiled()
def _question_ngrams(hashes_W, starts_Q, lengths_Q, ngram_words, minimum_words):
    """The hash of every n-gram of every question, and the question; the bits of the n-grams' beginnings.

    A short question is one n-gram.
    """
    total = 0
    for length in lengths_Q:
        if length >= minimum_words:
            total += max(1, length - ngram_words + 1)
    hashes_N, questions_N = np.empty(total, np.uint64), np.empty(total, np.int64)
    prefixes = np.zeros(capacity_for(8 * total + 64) // 64, np.uint64)  # 16 bits and more for each
    filled = 0
    for question in range(len(lengths_Q)):
        length = lengths_Q[question]
        if length < minimum_words:
            continue
        size = min(length, ngram_words)
        for start in range(starts_Q[question], starts_Q[question] + length - size + 1):
            hashed = START
            for index in range(start, start + size):
                hashed = extended(hashed, hashes_W[index])
                if index - start + 1 == minimum_words:
                    word, bit = prefix_bit(hashed, len(prefixes))
                    prefixes[word] |= bit
            hashes_N[filled] = max(hashed, np.uint64(1))  # 0 marks an empty slot
            questions_N[filled] = question
            filled += 1
    return hashes_N, questions_N, prefixes


@compiled()
def _table(keys_K, firsts_K, counts_K):
    size = capacity_for(2 * len(keys_K))  # a quarter full at most: nearly every look-up finds nothing
    keys_S = np.zeros(size, np.uint64)
    firsts_S, counts_S = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for k in range(len(keys_K)):
        slot = np.int64(keys_K[k] & np.uint64(size - 1))
        while keys_S[slot] != 0:
            slot = (slot + 1) & (size - 1)
        keys_S[slot], firsts_S[slot], counts_S[slot] = keys_K[k], firsts_K[k], counts_K[k]
    return keys_S, firsts_S, counts_S
