"""How well a tokenizer suits each language: tokens of a word, and tokens that are no whole characters.

Fertility: Ács, Exploring BERT's Vocabulary, 2019; Rust et al., How Good is Your Tokenizer?, 2021, section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel

from tasks.corpus.scoring.segments import segment_words
from tasks.training.chat import ChatTokenizer

MEASURED_CHARACTERS = 2**20
"""Of each language and part of a snapshot; what comes behind is not measured."""


class Fertility(BaseModel):
    """What was measured of a language."""

    tokens_per_word: float | None
    """words as the signals count them, a character each in scripts without spaces"""
    partial_share: float
    """of the tokens: those that are a piece of a character, or unknown"""
    measured_tokens: int


@dataclass
class FertilityCounts:
    """Tokens, words and partial tokens by language, with the characters that were measured."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(
        self, texts: Sequence[str], languages: Sequence[str], ids: Sequence[list[int]], partial_V: np.ndarray
    ) -> None:
        """Count some documents; ``partial_V`` is that of `partial_tokens`."""
        import pyarrow as pa

        chosen: list[int] = []
        for number, (text, language) in enumerate(zip(texts, languages, strict=True)):
            if self.counts[language, "characters"] < MEASURED_CHARACTERS:
                self.counts[language, "characters"] += len(text)
                chosen.append(number)
        if not chosen:
            return
        words = np.diff(segment_words(pa.array([texts[number] for number in chosen])).offsets_D1)
        for number, count in zip(chosen, words.tolist(), strict=True):
            language = str(languages[number])
            self.counts[language, "words"] += count
            self.counts[language, "tokens"] += len(ids[number])
            self.counts[language, "partial"] += int(partial_V[np.array(ids[number], np.int64)].sum())


def partial_tokens(tokenizer: ChatTokenizer) -> np.ndarray:
    """For every id whether it stands for no whole character, or for something unknown (bool, one for each
    id)."""
    partial_V = np.zeros(tokenizer.vocab_size, bool)
    for id in range(tokenizer.vocab_size):
        partial_V[id] = "\ufffd" in tokenizer.decode([id])
    if tokenizer.unknown_id is not None:
        partial_V[tokenizer.unknown_id] = True
    return partial_V


def fertility(parts: Iterable[FertilityCounts]) -> dict[str, Fertility]:
    """What all parts measured, by language."""
    total = sum((part.counts for part in parts), Counter[tuple[str, str]]())
    measured = sorted(language for language, what in total if what == "tokens")
    return {
        language: Fertility(
            tokens_per_word=round(total[language, "tokens"] / words, 4)
            if (words := total[language, "words"])
            else None,
            partial_share=round(total[language, "partial"] / total[language, "tokens"], 6),
            measured_tokens=total[language, "tokens"],
        )
        for language in measured
        if total[language, "tokens"]
    }
