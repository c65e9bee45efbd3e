from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tasks.corpus import fertility as module
from tasks.corpus.fertility import FertilityCounts, fertility, partial_tokens
from tasks.corpus.tokenizer import train_tokenizer
from tasks.training.chat import SPECIAL_TOKENS, ChatTokenizer

TEXTS = ["the mill grinds the grain and the miller sings", "the mill stands by the river"]


@pytest.fixture
def tokenizer(tmp_path: Path) -> ChatTokenizer:
    train_tokenizer(iter(TEXTS * 9), 300, list(SPECIAL_TOKENS)).save(str(tmp_path / "tokenizer.json"))
    return ChatTokenizer(tmp_path)


def test_a_token_that_is_a_piece_of_a_character_is_partial(tokenizer: ChatTokenizer) -> None:
    partial = partial_tokens(tokenizer)
    assert partial[tokenizer.encode("雪")].tolist() == [True, True, True]
    assert not partial[tokenizer.encode("the mill, 12!\n")].any()
    assert partial.shape == (tokenizer.vocab_size,)


def test_fertility_is_tokens_over_words_of_all_parts(tokenizer: ChatTokenizer) -> None:
    partial = partial_tokens(tokenizer)
    parts = []
    for text, language in ((TEXTS[0], "en"), (TEXTS[1], "en"), ("雪国", "ja"), ("...", "und")):
        parts.append(FertilityCounts())
        parts[-1].add([text], [language], [tokenizer.encode(text)], partial)
    found = fertility(parts)
    tokens = sum(len(tokenizer.encode(text)) for text in TEXTS)
    words = sum(len(text.split()) for text in TEXTS)
    assert found["en"].tokens_per_word == pytest.approx(tokens / words, abs=1e-4)
    assert (found["en"].partial_share, found["en"].measured_tokens) == (0.0, tokens)
    assert (found["ja"].tokens_per_word, found["ja"].partial_share) == (3.0, 1.0)
    assert found["und"].tokens_per_word is None


def test_no_more_of_a_language_is_measured_than_tells(
    tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MEASURED_CHARACTERS", 10)
    counts = FertilityCounts()
    for language in ("en", "en", "de"):
        counts.add(TEXTS, [language] * 2, [tokenizer.encode(text) for text in TEXTS], np.zeros(300, bool))
    first = len(tokenizer.encode(TEXTS[0]))
    assert {name: found.measured_tokens for name, found in fertility([counts]).items()} == {
        "en": first, "de": first,
    }  # fmt: skip
