"""Documents that contain evaluation items: which item, how much of it, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.compiled import compiled
from tasks.corpus.decontamination.index import ContaminationIndex, prefix_bit
from tasks.corpus.scoring.hashing import START, extended

if TYPE_CHECKING:
    import pyarrow as pa

    from tasks.corpus.scoring.segments import Words

EXCERPT = 200
"""Characters of a document that are shown."""


@dataclass(frozen=True)
class Contamination:
    """An evaluation item in a document: where most of its n-grams are together, in bytes of UTF-8."""

    set: str
    line: int
    """of the set's file; of equal items the first"""
    overlap: float
    """share of the question's n-grams that are anywhere in the document"""
    with_answer: bool
    """whether the item was found by fewer n-grams, because one of its answers is near"""
    start: int
    end: int
    excerpt: str

    def __str__(self) -> str:
        return f"{self.set}:{self.line} at bytes {self.start}-{self.end}: {self.excerpt}"


def find_contamination(
    index: ContaminationIndex, words: Words, texts: pa.StringArray | pa.LargeStringArray
) -> list[Contamination | None]:
    """For each document the item of which it contains the largest share, or None.

    A document contains an item if at least ``minimum_overlap`` of the question's n-grams occur in it, or at
    least ``minimum_overlap_with_answer`` of them and near them an answer. Of equal shares the item with more
    n-grams is named, then the first.
    """
    params = index.params
    found_D, overlaps_D, answered_D, firsts_D, lasts_D = _scan(
        words.hashes_W,
        words.offsets_D1,
        index.keys_S,
        index.first_postings_S,
        index.posting_counts_S,
        index.questions_P,
        index.ngrams_Q,
        index.words_Q,
        index.answers_Q1,
        index.answer_hashes_A,
        index.answer_words_A,
        index.prefixes,
        index.sizes,
        params.minimum_words,
        params.minimum_overlap,
        params.minimum_overlap_with_answer,
        params.answer_distance,
    )
    contaminations: list[Contamination | None] = [None] * len(found_D)
    for document in np.flatnonzero(found_D >= 0).tolist():
        name, line = index.items_Q[found_D[document]]
        start, end = int(words.starts_W[firsts_D[document]]), int(words.ends_W[lasts_D[document]])
        contaminations[document] = Contamination(
            set=name,
            line=line,
            overlap=round(float(overlaps_D[document]), 6),
            with_answer=bool(answered_D[document]),
            start=start,
            end=end,
            excerpt=_excerpt(texts[document].as_py(), start, end),
        )
    return contaminations


def _excerpt(text: str, start: int, end: int) -> str:
    """The span on one line, cut to `EXCERPT` characters."""
    span = text.encode("utf-8")[start : min(end, start + 8 * EXCERPT)]
    shown = " ".join(span.decode("utf-8", "ignore").split())
    return shown if len(shown) <= EXCERPT else shown[: EXCERPT - 1] + "…"


@compiled()
def _scan(
    hashes_W,
    offsets_D1,
    keys_S,
    first_postings_S,
    posting_counts_S,
    questions_P,
    ngrams_Q,
    words_Q,
    answers_Q1,
    answer_hashes_A,
    answer_words_A,
    prefixes,
    sizes,
    minimum_words,
    minimum_overlap,
    minimum_overlap_with_answer,
    answer_distance,
):
    """For each document: question or −1, overlap, whether by its answer, first and last word of the span.

    Constant work for each n-gram and posting, whatever a document repeats: a posting is stamped with the
    document that it was last seen in.
    """
    documents, questions = len(offsets_D1) - 1, len(ngrams_Q)
    found_D, overlaps_D = np.full(documents, -1, np.int64), np.zeros(documents, np.float64)
    answered_D = np.zeros(documents, np.bool_)
    firsts_D, lasts_D = np.zeros(documents, np.int64), np.zeros(documents, np.int64)
    stamps_P, stamps_Q = np.full(len(questions_P), -1, np.int64), np.full(questions, -1, np.int64)
    distinct_Q = np.zeros(questions, np.int64)
    # Of each question the run of n-grams that is being read, and the best so far: hits, first and last word.
    run_Q3, best_Q3 = np.zeros((questions, 3), np.int64), np.zeros((questions, 3), np.int64)
    touched_Q = np.empty(questions, np.int64)
    mask = len(keys_S) - 1
    for document in range(documents):
        begin, stop = offsets_D1[document], offsets_D1[document + 1]
        touched = 0
        for start in range(begin, stop - minimum_words + 1):
            hashed = START
            for index in range(start, start + minimum_words - 1):
                hashed = extended(hashed, hashes_W[index])
            for index in range(start + minimum_words - 1, min(stop, start + len(sizes) - 1)):
                hashed = extended(hashed, hashes_W[index])
                if index - start + 1 == minimum_words:
                    word, bit = prefix_bit(hashed, len(prefixes))
                    if not prefixes[word] & bit:
                        break
                if not sizes[index - start + 1]:
                    continue
                slot = _find(keys_S, mask, max(hashed, np.uint64(1)))
                if slot < 0:
                    continue
                for posting in range(first_postings_S[slot], first_postings_S[slot] + posting_counts_S[slot]):
                    question = questions_P[posting]
                    if stamps_Q[question] != document:
                        stamps_Q[question] = document
                        touched_Q[touched] = question
                        touched += 1
                        distinct_Q[question] = 0
                        run_Q3[question] = 0
                        best_Q3[question] = 0
                    if stamps_P[posting] != document:
                        stamps_P[posting] = document
                        distinct_Q[question] += 1
                    _extend_run(run_Q3[question], best_Q3[question], start, index, words_Q[question])
        best_overlap = 0.0
        for question in touched_Q[:touched]:
            overlap = distinct_Q[question] / ngrams_Q[question]
            answered = False
            if overlap < minimum_overlap:
                if overlap < minimum_overlap_with_answer or not _answer_near(
                    hashes_W,
                    begin,
                    stop,
                    best_Q3[question, 1],
                    best_Q3[question, 2],
                    answer_distance,
                    answer_hashes_A[answers_Q1[question] : answers_Q1[question + 1]],
                    answer_words_A[answers_Q1[question] : answers_Q1[question + 1]],
                ):
                    continue
                answered = True
            best = found_D[document]
            if best >= 0:
                if overlap < best_overlap:
                    continue
                if overlap == best_overlap and (-ngrams_Q[question], question) > (-ngrams_Q[best], best):
                    continue
            best_overlap = overlap
            found_D[document], overlaps_D[document], answered_D[document] = question, overlap, answered
            firsts_D[document], lasts_D[document] = best_Q3[question, 1], best_Q3[question, 2]
    return found_D, overlaps_D, answered_D, firsts_D, lasts_D


@compiled()
def _find(keys_S, mask, key):
    slot = np.int64(key & np.uint64(mask))
    while keys_S[slot] != 0:
        if keys_S[slot] == key:
            return slot
        slot = (slot + 1) & mask
    return -1


@compiled()
def _extend_run(run_3, best_3, first, last, question_words):
    """Add a hit to the run of hits not further apart than the question is long; keep the best run.

    A run ends where it spans more than twice the question, so that what is shown is one occurrence of it.
    """
    if run_3[0] and first - run_3[2] <= question_words and last - run_3[1] < 2 * question_words:
        run_3[0] += 1
        run_3[2] = max(run_3[2], last)
    else:
        run_3[0], run_3[1], run_3[2] = 1, first, last
    if run_3[0] > best_3[0]:
        best_3[:] = run_3


@compiled()
def _answer_near(hashes_W, begin, stop, first, last, distance, answer_hashes, answer_words):
    """Whether an answer is before or after the words ``first`` to ``last``, ``distance`` words off at most.

    Not between them: a question may name its answer itself.
    """
    for answer in range(len(answer_hashes)):
        length = answer_words[answer]
        earliest, latest = max(begin, first - distance - length), min(stop - length, last + 1 + distance)
        for start in range(earliest, latest + 1):
            if start + length > first and start <= last:
                continue
            hashed = START
            for index in range(start, start + length):
                hashed = extended(hashed, hashes_W[index])
            if hashed == answer_hashes[answer]:
                return True
    return False
