"""How well a tokenizer suits each language: tokens of a word, and tokens that are no whole characters.

Fertility: Ács, Exploring BERT's Vocabulary, 2019; Rust et al., How Good is Your Tokenizer?, 2021, section 3.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from pydantic import BaseModel

from tasks.corpus.scoring.segments import segment_words
from tasks.training.chat import ChatTokenizer

MEASURED_CHARACTERS = 2**20
"""Of each language and part of a snapshot; what comes behind is not measured."""

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


class Fertility(BaseModel):
    """What was measured of a language."""

    tokens_per_word: float | None
    """words as the signals count them, a character each in scripts without spaces"""
    partial_share: float
    """of the tokens: those that are a piece of a character"""
    unknown_share: float
    """of the tokens: those for what the vocabulary does not have, as ``[UNK]`` or ``<0xE9>``"""
    measured_tokens: int


@dataclass(frozen=True)
class TokenKinds:
    """For every id whether it stands for no whole character, and whether for something that the vocabulary
    does not have (bool)."""

    partial_V: np.ndarray
    unknown_V: np.ndarray


@dataclass
class FertilityCounts:
    """Tokens and words by language, with the characters that were measured.

    Documents are chosen as their texts pass, and their tokens counted once they lie in a file.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    chosen: list[tuple[int, str]] = field(default_factory=list)
    """Documents whose tokens are to be counted, with their language."""

    def choose(self, texts: Sequence[str], languages: Sequence[str], first: int) -> None:
        """Count the words of documents numbered from ``first`` on, of each language as far as it is
        measured."""
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
            self.counts[languages[number], "words"] += count
            self.chosen.append((first + number, languages[number]))

    def count(self, tokens_of: Callable[[int], np.ndarray], kinds: TokenKinds) -> None:
        """Count the tokens of the chosen documents, without their begin and end."""
        for number, language in self.chosen:
            ids_T = tokens_of(number)
            self.counts[language, "tokens"] += len(ids_T)
            self.counts[language, "partial"] += int(kinds.partial_V[ids_T].sum())
            self.counts[language, "unknown"] += int(kinds.unknown_V[ids_T].sum())
        self.chosen.clear()


def token_kinds(tokenizer: ChatTokenizer) -> TokenKinds:
    """What kind of token every id is."""
    ids = range(tokenizer.vocab_size)
    partial_V = np.array(["\ufffd" in text for text in tokenizer.decode_each(ids)], bool)
    unknown_V = np.zeros(len(ids), bool)
    if tokenizer.falls_back_to_bytes:
        unknown_V[[id for token, id in tokenizer.vocabulary().items() if _BYTE.fullmatch(token)]] = True
    if tokenizer.unknown_id is not None:
        unknown_V[tokenizer.unknown_id] = True
    return TokenKinds(partial_V, unknown_V)


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
            unknown_share=round(total[language, "unknown"] / total[language, "tokens"], 6),
            measured_tokens=total[language, "tokens"],
        )
        for language in measured
        if total[language, "tokens"]
    }
