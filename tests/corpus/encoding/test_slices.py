from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tasks.code import ROOT
from tasks.corpus.encoding import slices as module
from tasks.corpus.encoding.slices import LONGEST_SLICE, SLICE_CHARACTERS, Slice, batches, slice_size, slices
from tasks.corpus.tokenizer import train_tokenizer
from tasks.training.chat import SPECIAL_TOKENS


def texts_of(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["raw"] for line in lines]


@pytest.fixture(scope="module")
def books() -> list[str]:
    """Books, in English and Chinese, code and markup of the sample."""
    return [
        text
        for path in sorted((ROOT / "sample" / "corpus").glob("*.jsonl.gz"))
        for text in sorted(texts_of(path), key=len)[-1:]
    ]


def byte_level(texts: list[str]) -> Tokenizer:
    """As GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


@pytest.mark.parametrize("least", [40, 1000])
def test_the_slices_are_the_text(books: list[str], least: int) -> None:
    for text in [*books, "", " ", "a b", "雪" * 200]:
        found = list(slices("train", text, least))
        assert "".join(piece.text for piece in found) == text
        assert all(text[piece.start :].startswith(piece.text) for piece in found[:50])
        assert found[-1].start + len(found[-1].text) == len(text)
        assert [piece.first for piece in found] == [True] + [False] * (len(found) - 1)
        assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True]
        assert all(len(piece.text) >= least for piece in found[:-1])


@pytest.mark.parametrize("kind", ["ours", "byte-level"])
def test_where_a_text_is_cut_changes_no_token(books: list[str], kind: str) -> None:
    tokenizer = (
        train_tokenizer(iter(books), 600, list(SPECIAL_TOKENS)) if kind == "ours" else byte_level(books)
    )

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    assert slice_size(encode) == SLICE_CHARACTERS
    for text in books:
        found = list(slices("train", text, 300))
        assert len(found) > 5
        assert [id for piece in found for id in encode(piece.text)] == encode(text)


def test_a_tokenizer_that_puts_a_blank_before_every_text_gets_long_slices(books: list[str]) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    lines = [line for text in books for line in text.splitlines()[:40]]
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=300, show_progress=False))
    assert slice_size(lambda text: tokenizer.encode(text).ids) == LONGEST_SLICE


def test_a_text_without_blanks_is_cut_after_the_longest_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_SLICE", 100)
    found = list(slices("train", "雪" * 250, 20))
    assert [len(piece.text) for piece in found] == [120, 120, 10]


def test_batches_hold_all_slices_in_order_and_end_when_they_are_full() -> None:
    given = [Slice("train", "x" * size, 0, True, True) for size in (5, 5, 30, 1, 1)]
    found = list(batches(given, 12))
    assert [[len(piece.text) for piece in together] for together in found] == [[5, 5], [30], [1, 1]]
