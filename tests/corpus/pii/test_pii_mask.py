"""Placeholders: one for each value, the same everywhere, never found again."""

from __future__ import annotations

import random

import pytest

from tasks.corpus.pii.find import KINDS, Found, find_personal_data
from tasks.corpus.pii.mask import count, mask


def masked(text: str, key: bytes = b"") -> str:
    return mask(text, find_personal_data(text), key)


def test_a_placeholder_names_the_kind_and_nothing_else_of_the_value():
    text = masked("Write to ann@example.org.")
    assert text.startswith("Write to <email-")
    assert len(text) == len("Write to <email-01234567>.")
    assert "ann" not in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ann@Example.ORG", "ann@example.org"),
        ("ann at example dot org", "ann@example.org"),
        ("+49 (0)30 1234567", "+49-30-123 4567"),
        ("0049 30 1234567", "+49301234567"),
        ("tel ０３０ １２３４５６", "tel 030-123456"),
        ("host 2A00:1450:4001:81B:0:0:0:200E", "host 2a00:1450:4001:81b::200e"),
        ("4111-1111-1111-1111", "4111 1111 1111 1111"),
        ("DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("BSN 1112.22.333", "BSN 111222333"),
    ],
)
def test_the_same_value_written_otherwise_has_the_same_placeholder(one: str, other: str):
    assert masked(one) == masked(other)


def test_a_placeholder_depends_on_the_value_alone_not_on_its_place_or_company():
    alone = masked("ann@example.org")
    assert masked("bob@example.org, ann@example.org and ann@example.org").count(alone) == 2
    assert masked("bob@example.org") != alone


def test_a_key_changes_every_placeholder():
    assert masked("ann@example.org", b"salt") not in (
        masked("ann@example.org"),
        masked("ann@example.org", b"pepper"),
    )
    with pytest.raises(ValueError, match="at most 64"):
        masked("ann@example.org", b"x" * 65)


def test_finds_that_overlap_or_lie_outside_are_refused():
    with pytest.raises(ValueError, match="in order"):
        mask("abcdef", [Found("email", 0, 4), Found("email", 3, 6)])
    with pytest.raises(ValueError, match="in order"):
        mask("abc", [Found("email", 0, 4)])


def test_a_masked_text_has_nothing_left_to_find():
    pieces = ["ann@example.org", "+49 30 1234567", "tel", "13812345678", "4111 1111 1111 1111",
    "81.12.45.200", "version", "8.8.4.4", "SSN",
              "123-45-6789", "DE89370400440532013000", "://root:p4ssWx99@db.example.org",
              'password="Tr0ub4dor&3x"', "phone", "电话", "1234567",
              "<phone-1234567>", "<email-3f9a2c1b>", "card", "4111111111111111", "030 / 1234567", " ", ",",
              "\n", "2a00:1450:4001:81b::200e"]  # fmt: skip
    rng = random.Random(0)
    for _ in range(1500):
        text = rng.choice(["", " ", "  "]).join(rng.choices(pieces, k=12))
        once = masked(text)
        assert masked(once) == once


def test_the_earlier_placeholders_of_six_digits_stay():
    text = "from <email-3f9a2c> tel <phone-12345678> 12"
    assert masked(text) == text


def test_the_count_has_every_kind():
    finds = find_personal_data("ann@example.org, bob@example.org")
    assert count(finds) == {kind: 2 if kind == "email" else 0 for kind in KINDS}
