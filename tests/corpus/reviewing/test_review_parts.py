"""Parts of a review: masked texts, passages that differ, the smallest of many."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from tasks.corpus.reviewing.edits import COMPARED_CHARACTERS, Edit, edits
from tasks.corpus.reviewing.privacy import shown, veiled
from tasks.corpus.reviewing.smallest import Smallest, id_bytes, ranks

ADDRESS = "anna.smith@example.com"


def test_no_cut_divides_personal_data():
    for before in range(180, 215):
        text = "a" * before + f" {ADDRESS} " + "b" * 300 + f" {ADDRESS} " + "c" * (300 - before)
        seen = shown(text, 300)
        assert "anna" not in seen
        assert "example" not in seen


def test_the_same_value_has_the_placeholder_that_it_has_in_the_corpus():
    from tasks.corpus.pii.find import find_personal_data
    from tasks.corpus.pii.mask import mask

    text = f"write to {ADDRESS} now"
    assert shown(text, 1000, b"key") == mask(text, find_personal_data(text), b"key")


def test_a_text_within_the_limit_is_shown_whole():
    assert shown("x" * 300, 300) == "x" * 300


def test_a_veil_keeps_form_and_length_and_nothing_else():
    text = f"Mail {ADDRESS.upper()}, server 81.2.69.142."
    assert veiled(text) == "Mail XXXX.XXXXX@XXXXXXX.XXX, server 99.9.99.999."


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a\nb\nc", "a\nc", [Edit("b", "")]),
        ("a\nb\nc", "a\nB\nc", [Edit("b", "B")]),
        ("a\n\nb\n\nc\n\nd", "a\n\nd", [Edit("b\n\nc\n", "")]),
        ("a", "", [Edit("a", "")]),
        ("", "a", [Edit("", "a")]),
        ("a\nb", "a\nb\nc", [Edit("", "c")]),
        ("a\nb\nc\nd\ne", "A\nb\nc\nd\nE", [Edit("a", "A"), Edit("e", "E")]),
    ],
)
def test_passages_are_those_lines_that_differ(before, after, expected):
    assert edits(before, after) == (expected, len(expected))


def test_applying_the_passages_to_one_side_gives_the_other():
    draw = random.Random(5)
    for _ in range(300):
        lines = [draw.choice("abc") + str(draw.randrange(8)) for _ in range(draw.randrange(1, 30))]
        kept = [line.replace("a", "<x>") for line in lines if draw.random() < 0.7]
        found, many = edits("\n".join(lines), "\n".join(kept), most=100)
        assert many == len(found)
        assert (many == 0) == (lines == kept)


def test_a_long_passage_is_shown_around_its_first_difference():
    (edit,), _ = edits("x" * 5000 + "A" + "y" * 5000, "x" * 5000 + "B" + "y" * 5000, characters=100)
    assert edit == Edit("…" + "x" * 25 + "A" + "y" * 74 + "…", "…" + "x" * 25 + "B" + "y" * 74 + "…")


def test_texts_too_long_to_compare_whole_end_in_no_false_difference():
    line = "a line like every other\n"
    before = "taken out\n" + line * 40_000
    assert len(before) > COMPARED_CHARACTERS
    assert edits(before, line * 40_000) == ([Edit("taken out", "")], 1)


@pytest.mark.parametrize("lines", [5_000, 50_000])
def test_texts_that_have_nothing_in_common_are_one_passage(lines):
    before = "\n".join(f"a{n}" for n in range(lines))
    after = "\n".join(f"b{n}" for n in range(lines))
    assert edits(before, after)[1] == 1


def identifiers(many: int) -> np.ndarray:
    return id_bytes(pa.array([f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}" * 2 for number in range(many)]))


@pytest.mark.parametrize("parts", [1, 2, 9])
def test_the_smallest_do_not_depend_on_order_or_division(parts):
    ids = identifiers(1000)
    whole = Smallest(25)
    whole.add(ranks(ids, 1, "a"), ids)
    shuffled = np.random.default_rng(3).permutation(np.concatenate([ids, ids[:300]]))  # some of them twice
    divided = Smallest(25)
    for part in np.array_split(shuffled, parts):
        divided.add(ranks(part, 1, "a"), part)
    expected = sorted(zip(ranks(ids, 1, "a").tolist(), ids.tolist(), strict=True))[:25]
    assert divided.items() == whole.items() == [(rank, name.decode()) for rank, name in expected]


def test_ranks_of_two_rules_have_nothing_to_do_with_each_other():
    ids = identifiers(4000)
    first, second = (ranks(ids, 1, rule).astype(float) for rule in "ab")
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06


def test_an_id_that_is_none_is_refused():
    with pytest.raises(pa.ArrowInvalid):
        id_bytes(pa.array(["short"]))


def test_ids_of_a_slice_are_those_of_the_slice():
    column = pa.array([f"{number:032x}" for number in range(10)])
    assert id_bytes(column.slice(4, 2)).tolist() == [f"{4:032x}".encode(), f"{5:032x}".encode()]
