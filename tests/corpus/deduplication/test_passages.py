from __future__ import annotations

import itertools
import random
import sys
import unicodedata

import pytest

from tasks.corpus.deduplication.passage_removal import without_lines
from tasks.corpus.deduplication.passages import LINE, PARAGRAPH, Passages, passages
from tasks.records import content_hash


def found(text: str, kind: int) -> list[tuple[int, int]]:
    every = passages([text], lines=True, paragraphs=True)
    return [
        (first, last)
        for of, first, last in zip(
            every.kinds_P.tolist(), every.first_P.tolist(), every.last_P.tolist(), strict=True
        )
        if of == kind
    ]


def in_plain_python(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    lines = [number for number, line in enumerate(text.split("\n")) if line.strip()]
    blocks: list[list[int]] = []
    for number in lines:
        if blocks and blocks[-1][-1] == number - 1:
            blocks[-1].append(number)
        else:
            blocks.append([number])
    return [(number, number) for number in lines], [(block[0], block[-1]) for block in blocks]


@pytest.mark.parametrize("seed", range(30))
def test_lines_and_paragraphs_are_those_of_plain_python(seed: int) -> None:
    coin = random.Random(seed)
    text = "".join(coin.choices(["a", "b ", "\n", "\n\n", " ", "é", "人\u3000工", "ﬁ", "\t", "ẞ"], k=40))
    lines, paragraphs = in_plain_python(text)
    assert found(text, LINE) == lines
    assert found(text, PARAGRAPH) == paragraphs


@pytest.mark.parametrize("seed", range(30))
def test_passages_have_one_hash_where_their_content_is_equal_and_only_there(seed: int) -> None:
    coin = random.Random(seed)
    pieces = ["a", "A", "Ａ", " ", "\t", "\n", "é", "É", "e\u0301", "ﬁ", "fi", "\u3000", "人"]
    texts = ["x" + "".join(coin.choices(pieces, k=3)) + "y" for _ in range(200)]
    blocks = passages(texts, lines=False, paragraphs=True)
    assert len(blocks.hashes_P) >= len(texts)
    single = [
        number for number, count in enumerate(counts_of(blocks)) if count == 1
    ]  # a blank line makes two of one
    hashes = {number: int(blocks.hashes_P[blocks.offsets_D1[number]]) for number in single}
    for one, other in itertools.combinations(single[:80], 2):
        same = content_hash(texts[one]) == content_hash(texts[other])
        assert (hashes[one] == hashes[other]) == same, (texts[one], texts[other])


def counts_of(every: Passages) -> list[int]:
    return (every.offsets_D1[1:] - every.offsets_D1[:-1]).tolist()


def test_a_line_is_no_paragraph_and_has_another_hash() -> None:
    one = passages(["the same words"], lines=True, paragraphs=True)
    assert one.kinds_P.tolist() == [LINE, PARAGRAPH]
    assert len(set(one.hashes_P.tolist())) == 2
    assert one.characters_P.tolist() == [14, 14]


def test_characters_are_those_of_the_normal_form() -> None:
    every = passages(["  Two \t words\nand ﬁve  "], lines=True, paragraphs=True)
    assert every.characters_P.tolist() == [9, 8, 18]


def test_normal_forms_neither_make_nor_take_a_line() -> None:
    for code in [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]:
        normal = unicodedata.normalize("NFKC", chr(code)).casefold()
        assert ("\n" in normal) == (code == 10), hex(code)


def test_texts_without_words_have_no_passages() -> None:
    every = passages(["", "\n \n\t\n", "\n\n"], lines=True, paragraphs=True)
    assert counts_of(every) == [0, 0, 0]
    assert passages([], lines=True, paragraphs=True).offsets_D1.tolist() == [0]


def test_a_passage_does_not_depend_on_the_texts_beside_its_own() -> None:
    texts = ["one\ntwo\n\nthree", "two", "", "three\n"]
    whole = passages(texts, lines=True, paragraphs=True)
    for number, text in enumerate(texts):
        alone = passages([text], lines=True, paragraphs=True)
        begin, end = whole.offsets_D1[number], whole.offsets_D1[number + 1]
        assert (alone.hashes_P == whole.hashes_P[begin:end]).all()
        assert (alone.first_P == whole.first_P[begin:end]).all()


@pytest.mark.parametrize(
    ("text", "removed", "left"),
    [
        ("a\nx\nb", {1}, "a\nb"),
        ("a\n\nx\n\nb", {2}, "a\n\nb"),
        ("a\n\nx\nb", {2}, "a\n\nb"),
        ("a\nx\n\nb", {1}, "a\n\nb"),
        ("a\n\nx\n\ny\n\nb", {2, 4}, "a\n\nb"),
        ("x\n\na", {0}, "a"),
        ("a\n\nx\n", {2}, "a"),
        ("x\n\ny", {0, 2}, ""),
        ("\n\nx\n\n  a\n\n\nb\n", {2}, "  a\n\n\nb\n"),
        ("a\n\n\n\nb\nx", {5}, "a\n\n\n\nb"),
    ],
)
def test_no_run_of_blank_lines_is_left_where_lines_go(text: str, removed: set[int], left: str) -> None:
    assert without_lines(text, removed) == left


def test_a_text_of_which_nothing_goes_is_unchanged() -> None:
    text = "\n a\n\n\nb \n\n"
    assert without_lines(text, set()) == text
