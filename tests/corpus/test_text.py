"""What is done to, and measured of, a single text."""

from __future__ import annotations

import pytest

from tasks.corpus.extract import extract_text, normalise
from tasks.corpus.language import detect_language
from tasks.corpus.privacy import mask_emails
from tasks.corpus.signals import measure, words

ENGLISH = "It was the best of times, it was the worst of times, it was the age of wisdom."


@pytest.mark.parametrize(
    "proper",
    [
        "“Don’t,” she said – and left…",
        "全角标点，没有变。",
        "It’s the windows-1252 apostrophe",
        "The letters Ã and ©",
    ],
)
def test_proper_text_is_not_changed(proper: str) -> None:
    assert normalise(proper) == proper


def test_line_ends_and_controls_are_mended() -> None:
    assert normalise("a \r\nb\rc\x07\n\n\n\nd\ufeff ") == "a\nb\nc\n\nd"


def test_the_frame_of_project_gutenberg_goes() -> None:
    book = (
        "Licence\n*** START OF THE PROJECT GUTENBERG EBOOK X ***\nCall me.\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK X ***\nMore licence"
    )
    assert extract_text(book, "plain") == "Call me."


@pytest.mark.parametrize("page", ["", "<html></html>", "<html><body></body></html>", "no markup < at > all"])
def test_html_without_a_text_is_no_crash(page: str) -> None:
    assert isinstance(extract_text(page, "html"), str)


def test_scripts_without_spaces_are_counted_by_character() -> None:
    assert len(words("人工智能是工程和科学的分支" * 10)) == 130
    assert len(words("การทดสอบ")) == 8


def test_words_with_an_apostrophe_are_one() -> None:
    assert words("don't stop, it’s") == ["don't", "stop", "it’s"]


def test_blank_lines_are_not_duplicate_lines() -> None:
    assert measure("a\n\n\n\nb")["duplicate_line_share"] == 0


def test_repeated_lines_are_counted_without_their_first() -> None:
    signals = measure("spam\nspam\nspam\neggs")
    assert signals["duplicate_line_share"] == 0.5
    assert signals["duplicate_line_character_share"] == 0.5


def test_stop_words_are_found_in_capitals() -> None:
    assert measure("THE SHIP AND THE SEA, THAT WAS TO BE")["stop_words"] == 5


def test_an_empty_text_has_all_signals() -> None:
    assert set(measure("")) == set(measure(ENGLISH))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (ENGLISH.upper(), "en"),
        (ENGLISH.replace(", ", ",\n"), "en"),
        ("Es war die beste und die schlechteste aller Zeiten, das Jahrhundert der Weisheit.", "de"),
        ("人工智能是工程和科学的分支，致力于构建具有思维的机器，这是我们的工作。", "zh"),
        ("ok", "und"),
        ("12345 67890 + 333 = 44", "und"),
        ("", "und"),
    ],
)
def test_language(text: str, language: str) -> None:
    found, score = detect_language(text)
    assert found == language
    assert 0 <= score <= 1


@pytest.mark.parametrize(
    "address", ["a@b.org", "first.last+tag@mail.example.co.uk", "x_y%z@sub-domain.example.museum"]
)
def test_addresses_are_masked(address: str) -> None:
    masked, count = mask_emails(f"Mail <{address}>, please.")
    assert count == 1
    assert address not in masked


@pytest.mark.parametrize(
    "text", ["@property", "git@localhost", "user@host", "a @ b.org", "x@@y.org", "1@2.3"]
)
def test_what_is_no_address_stays(text: str) -> None:
    assert mask_emails(text) == (text, 0)


def test_masking_a_megabyte_without_an_address_ends() -> None:
    text = "a" * 10**6 + "." * 10**5 + "@"
    assert mask_emails(text) == (text, 0)
