"""How well a piece of text in one script fits each language, and whether it is language at all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from tasks.corpus.languages.words import FUNCTION_WORDS, LETTERS

WORD_WEIGHT = 1.0
"""Nats for each function word of a language. Words are not independent: less than their likelihood ratio."""

LETTER_WEIGHT = 1.0
"""Nats against a language for each letter that it does not have."""

COUNTED = 12
"""As many function words of the best language, and foreign letters, say as much as any more."""

UNLISTED = -2.0
"""Nats for a language without a list of words: its mistakes cannot be seen."""

RARE = -1.0
"""Nats for a language that the classifier names more often by mistake than rightly."""

RARE_LANGUAGES = frozenset(
    ("af", "ast", "cy", "eu", "fy", "ga", "gl", "ia", "io", "is", "la", "lb", "nds", "oc", "sq", "sw", "tl")
)

NEAR = 2
"""A language with so many function words fewer than the best is no candidate by its words."""

CERTAIN = 10.0
"""Nats of function words from which the letters need not be asked."""

LEAST_PROBABILITY = 1e-3
"""What a language has that the classifier does not name."""

_HIT, _MISS = math.log(0.35 / 0.03), math.log(0.65 / 0.97)
"""A word of a text is a function word of its language in 35 cases of 100, of another in 3."""

_FREQUENCY = {
    "e": 11.5, "a": 10.0, "i": 8.0, "n": 7.2, "o": 7.2, "r": 6.4, "s": 6.4, "t": 6.4, "l": 4.8, "d": 4.2,
    "u": 4.2, "m": 3.2, "c": 3.2, "p": 2.6, "k": 2.4, "h": 2.2, "g": 2.0, "v": 1.8, "z": 1.8, "b": 1.5,
    "y": 1.5, "f": 1.2, "j": 1.2, "w": 1.2, "q": 0.3, "x": 0.3,
}  # fmt: skip
"""Letters in 100, rounded means over large languages in Latin script."""

_LETTER_RATIO = {letter: math.log(share / 100 * 26) for letter, share in _FREQUENCY.items()}


class _Listed(dict[str, tuple[str, ...]]):
    """Word → the languages that list it; an elided word (l'amour) counts by what is before the apostrophe."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        head, apostrophe, _ = word.partition("'")
        return self.get(head + apostrophe, ()) if apostrophe else ()


_ROT13 = str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")

_LISTED = _Listed(
    (word, tuple(language for language, words in FUNCTION_WORDS.items() if word in words))
    for word in frozenset().union(*FUNCTION_WORDS.values())
)
_MARKED = frozenset("".join(LETTERS.values()))


def function_words(words: Iterable[str]) -> Counter[str]:
    """How many of the words (in lower case) are function words of each language; elided ones count."""
    return Counter(chain.from_iterable(map(_LISTED.__getitem__, words)))


def posterior(
    predicted: Mapping[str, float], hits: Mapping[str, int], line: str, candidates: Collection[str] = ()
) -> dict[str, float]:
    """The probability of each language: classifier, function words and letters as a log-linear model.

    ``line`` is the text in lower case. ``candidates`` are the languages of its script; none means any that
    the classifier or the words name.
    """
    most = max(hits.values(), default=0)
    least = max(1, most - NEAR)
    weight = WORD_WEIGHT * min(1.0, COUNTED / max(1, most))
    names = {language for language, count in hits.items() if count >= least} | predicted.keys()
    if candidates:
        names &= set(candidates)
        names = names or {next(iter(candidates))}
    marks = [] if line.isascii() else [(mark, line.count(mark)) for mark in _MARKED.intersection(line)]
    scores = {language: _score(language, predicted, hits, weight, marks) for language in names}
    best = max(scores.values(), default=0.0)
    weights = {language: math.exp(score - best) for language, score in scores.items()}
    total = sum(weights.values())
    return {language: weight / total for language, weight in weights.items()}


def _score(
    language: str,
    predicted: Mapping[str, float],
    hits: Mapping[str, int],
    weight: float,
    marks: list[tuple[str, int]],
) -> float:
    score = math.log(max(predicted.get(language, 0.0), LEAST_PROBABILITY))
    if language not in FUNCTION_WORDS:
        return score + UNLISTED
    score += weight * hits.get(language, 0)
    if language in RARE_LANGUAGES:
        score += RARE
    if marks:
        own = LETTERS[language]
        score -= LETTER_WEIGHT * min(sum(count for mark, count in marks if mark not in own), COUNTED)
    return score


def plausibility(words: Sequence[str], known: int) -> float:
    """How likely words in Latin script are language rather than cipher or noise, in [0, 1].

    A likelihood ratio: letters as languages have them against letters drawn evenly, and ``known`` function
    words of the supposed language among the words against as many as chance gives. The function words that
    ROT13 brings out speak against.
    """
    ratio = known * _HIT + (len(words) - known) * _MISS
    if ratio < CERTAIN:
        letters = "".join(words)
        ratio += sum(letters.count(letter) * value for letter, value in _LETTER_RATIO.items())
        deciphered = function_words(word.translate(_ROT13) for word in words)
        ratio -= _HIT * max(deciphered.values(), default=0)
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, ratio))))
