from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models

from tasks.corpus import fertility as module
from tasks.corpus.fertility import FertilityCounts, fertility, token_kinds
from tasks.corpus.tokenizer import train_tokenizer
from tasks.training.chat import SPECIAL_TOKENS, ChatTokenizer

TEXTS = ["the mill grinds the grain and the miller sings", "the mill stands by the river"]


@pytest.fixture
def tokenizer(tmp_path: Path) -> ChatTokenizer:
    train_tokenizer(iter(TEXTS * 9), 300, list(SPECIAL_TOKENS)).save(str(tmp_path / "tokenizer.json"))
    return ChatTokenizer(tmp_path)


def test_a_token_that_is_a_piece_of_a_character_is_partial(tokenizer: ChatTokenizer) -> None:
    partial_V = token_kinds(tokenizer).partial_V
    assert partial_V[tokenizer.encode("雪")].tolist() == [True, True, True]
    assert not partial_V[tokenizer.encode("the mill, 12!\n")].any()
    assert partial_V.shape == (tokenizer.vocab_size,)


def counted(tokenizer: ChatTokenizer, texts: list[str], languages: list[str]) -> FertilityCounts:
    counts = FertilityCounts()
    counts.choose(texts, languages, first=7)
    encoded = [np.array(tokenizer.encode(text), np.int64) for text in texts]
    counts.count(lambda document: encoded[document - 7], token_kinds(tokenizer))
    return counts


def test_fertility_is_tokens_over_words_of_all_parts(tokenizer: ChatTokenizer) -> None:
    given = ((TEXTS[0], "en"), (TEXTS[1], "en"), ("雪国", "ja"), ("...", "und"))
    found = fertility(counted(tokenizer, [text], [language]) for text, language in given)
    tokens = sum(len(tokenizer.encode(text)) for text in TEXTS)
    words = sum(len(text.split()) for text in TEXTS)
    assert found["en"].tokens_per_word == pytest.approx(tokens / words, abs=1e-4)
    assert (found["en"].partial_share, found["en"].measured_tokens) == (0.0, tokens)
    assert (found["ja"].tokens_per_word, found["ja"].partial_share) == (3.0, 1.0)
    assert found["und"].tokens_per_word is None
    assert {language.unknown_share for language in found.values()} == {0.0}


@pytest.mark.parametrize("fallback", [False, True], ids=["unknown token", "bytes"])
def test_what_the_vocabulary_does_not_have_is_a_share_of_each_language(
    tmp_path: Path, fallback: bool
) -> None:
    characters = sorted(set("".join(TEXTS)))
    pieces = ["[UNK]", *SPECIAL_TOKENS, *(f"<0x{byte:02X}>" for byte in range(256)), *characters]
    vocabulary = {piece: id for id, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="[UNK]", byte_fallback=fallback))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    found = fertility([counted(ChatTokenizer(tmp_path), [TEXTS[0], "雪 e"], ["en", "ja"])])
    assert found["en"].unknown_share == 0
    assert found["ja"].unknown_share == pytest.approx(3 / 5 if fallback else 1 / 3, abs=1e-6)


def test_no_more_of_a_language_is_measured_than_tells(
    tokenizer: ChatTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MEASURED_CHARACTERS", 10)
    counts = counted(tokenizer, [*TEXTS * 2, *TEXTS], ["en"] * 4 + ["de"] * 2)
    first = len(tokenizer.encode(TEXTS[0]))
    assert {name: found.measured_tokens for name, found in fertility([counts]).items()} == {
        "en": first, "de": first,
    }  # fmt: skip
