"""Mojibake, control characters, and the frame of Project Gutenberg."""

from __future__ import annotations

import pytest

from tasks.corpus.extraction.extract import extract_text
from tasks.corpus.extraction.normalise import normalise


@pytest.mark.parametrize(
    "proper",
    [
        "“Don’t,” she said – and left…",
        "全角标点，没有变。ＡＢＣ",
        "It’s the windows-1252 apostrophe",
        "The letters Ã and ©",
        "CAFÉ” «À» MÊME… “TÊTE” ÀÉ—ÎÔ",
        "der Name »Müller« ﬁne ﬂow",
        "&amp; &eacute; are entities",
        "sequences of characters like “Ã©” or “Ã§”, it is probably",
        "Съешь ещё этих мягких французских булок, Р°",
        "10\u00a0000 € à Paris\u00a0!",
    ],
)
def test_proper_text_is_not_changed(proper: str) -> None:
    assert normalise(proper) == proper


@pytest.mark.parametrize(
    ("damaged", "text"),
    [
        ("dÃ©compresseur", "décompresseur"),
        ("itâ€™s", "it’s"),
        ("Il s\u00e2\u0080\u0099agit", "Il s’agit"),
        ("\x93quoted\x94", "“quoted”"),
        ("РџСЂРёРІРµС‚ мир", "Привет мир"),
        ("good line “a”\nschÃ¶n", "good line “a”\nschön"),
    ],
)
def test_mojibake_is_mended(damaged: str, text: str) -> None:
    assert normalise(damaged) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a \r\nb\rc\x07\n\n\n\nd\ufeff ", "a\nb\nc\n\nd"),
        ("N\x08NA\x08A \x1b[1mbold\x1b[0m", "NA bold"),
        ("page\x0cpage", "page\npage"),
        ("e\u0301", "é"),
        ("a\ud800b", "a\ufffdb"),
        ("  indented\n", "  indented"),
        ("soft\u00adhyphen", "softhyphen"),
        (" \n\t\n", ""),
    ],
)
def test_one_form_for_every_text(raw: str, text: str) -> None:
    assert normalise(raw) == text


def test_normalising_twice_changes_nothing_more() -> None:
    once = normalise("a \r\n\n\n\x00e\u0301 dÃ©c\x1b[0m\n")
    assert normalise(once) == once


WORK = "Call me Ishmael.\n\nSome years ago"


@pytest.mark.parametrize(
    "book",
    [
        f"Licence\n*** START OF THE PROJECT GUTENBERG EBOOK X ***\n{WORK}\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK X ***\nMore",
        f"***START OF THIS PROJECT GUTENBERG EBOOK A TITLE OF\nTWO LINES***\n\n"
        f"Produced by A. B.\nand C.\n\n{WORK}\n\n"
        "End of Project Gutenberg's X, by Y\n\n*** END OF THIS PROJECT GUTENBERG EBOOK X ***\nLicence",
        "**Welcome To The World of Free Plain Vanilla Electronic Texts**\n"
        f"*END*THE SMALL PRINT! FOR PUBLIC DOMAIN ETEXTS*Ver.04.29.93*END*\n\n{WORK}\n\n"
        "End of the Project Gutenberg Etext of X\n",
        f"{WORK}\n\n<<THIS ELECTRONIC VERSION OF THE COMPLETE WORKS OF WILLIAM\n"
        "SHAKESPEARE IS COPYRIGHT 1990-1993 BY "
        "WORLD LIBRARY, INC., AND IS\nPROVIDED BY "
        "PROJECT GUTENBERG ETEXT OF ILLINOIS BENEDICTINE COLLEGE>>\n",
    ],
)
def test_the_frame_of_project_gutenberg_goes(book: str) -> None:
    assert extract_text(book, "plain") == WORK


def test_two_books_in_a_file_each_lose_their_frame() -> None:
    frame = (
        "*** START OF THE PROJECT GUTENBERG EBOOK X ***\n{}\n"
        "*** END OF THE PROJECT GUTENBERG EBOOK X ***\nLicence\n"
    )
    assert extract_text(frame.format("one") + frame.format("two"), "plain") == "one\n\ntwo"


def test_a_work_is_never_taken_for_a_frame() -> None:
    long = "A line of the work.\n" * 5000
    text = f"{long}*** START OF THE PROJECT GUTENBERG EBOOK X ***\n{WORK}"
    assert extract_text(text, "plain").startswith("A line of the work.")
    assert extract_text("Gutenberg printed a book.", "plain") == "Gutenberg printed a book."


def test_the_beginning_of_a_poem_by_milton() -> None:
    poem = (
        "L'ALLEGRO, IL PENSEROSO By John Milton\r\n\r\n\r\n\r\n"
        "L'ALLEGRO\r\n\r\n\r\nHENCE, loathed Melancholy,\r\n............Of Cerberus\x1a"
    )
    assert extract_text(poem, "plain") == (
        "L'ALLEGRO, IL PENSEROSO By John Milton\n\nL'ALLEGRO\n\nHENCE, loathed Melancholy,\n"
        "............Of Cerberus"
    )
