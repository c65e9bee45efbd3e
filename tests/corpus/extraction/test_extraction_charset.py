"""From bytes to characters."""

from __future__ import annotations

import pytest

from tasks.corpus.extraction.charset import Decoded, UndecodableText, decode_bytes

FRENCH = "Le café est très agréable à l’été, déjà vu."


@pytest.mark.parametrize("bom", ["utf-8-sig", "utf-16"])
def test_a_bom_comes_before_everything_that_is_declared(bom: str) -> None:
    assert decode_bytes(FRENCH.encode(bom), "koi8-r").text == FRENCH


@pytest.mark.parametrize(
    "head",
    [
        "<meta charset=iso-8859-1>",
        '<meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-1">',
        '<?xml version="1.0" encoding="latin1"?>',
        "<!-- <meta charset=koi8-r> --><meta charset='ascii'>",
    ],
)
def test_html_declares_its_encoding_and_latin_1_means_windows_1252(head: str) -> None:
    page = head + FRENCH
    assert decode_bytes(page.encode("cp1252"), None, "html") == Decoded(page, "windows-1252", 0)


def test_the_header_comes_before_the_page() -> None:
    assert decode_bytes("<meta charset=koi8-r>Привет".encode("cp1251"), "windows-1251", "html").text.endswith(
        "Привет"
    )


@pytest.mark.parametrize("declared", ["utf-8", "nonsense", "rot13", "utf-7", "", None])
def test_a_declaration_that_cannot_be_is_passed_over(declared: str | None) -> None:
    assert decode_bytes(FRENCH.encode("cp1252"), declared).text == FRENCH


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf-8", FRENCH),
        ("cp1252", FRENCH),
        ("cp1252", "El niño español pequeño, Müller größer Straße “naïve”"),
        ("cp1251", "Привет, это обычный русский текст, который нужно распознать."),
        ("koi8_r", "Привет, это обычный русский текст, который нужно распознать."),
        ("shift_jis", "これは日本語の文章です。文字コードを判定します。"),
        ("euc_jp", "これは日本語の文章です。文字コードを判定します。"),
        ("gb2312", "人工智能是工程和科学的分支，致力于构建具有思维的机器。"),
        ("big5", "人工智慧是工程和科學的分支，致力於構建具有思維的機器。"),
        ("euc_kr", "이것은 한국어 문장입니다. 인코딩을 판별합니다."),
        ("utf-16-le", "wide text without a mark"),
    ],
)
def test_what_nothing_declares_is_detected(encoding: str, text: str) -> None:
    assert decode_bytes(text.encode(encoding)).text == text


def test_utf_8_with_a_bad_byte_is_utf_8_and_says_how_many() -> None:
    assert decode_bytes("é".encode() * 50 + b"\xff.") == Decoded("é" * 50 + "\ufffd.", "utf-8", 1)


@pytest.mark.parametrize(
    ("raw", "offset"),
    [
        (b"text\x00\x01\x02\x00\x00\x00", 4),
        (b"%PDF-1.7", 0),
        (b"PK\x03\x04", 0),
        (bytes(range(1, 32)) * 9, 0),
    ],
)
def test_binary_data_is_no_text(raw: bytes, offset: int) -> None:
    with pytest.raises(UndecodableText, match="not text") as caught:
        decode_bytes(raw)
    assert caught.value.offset == offset
    assert caught.value.reason


def test_an_empty_document_is_empty_text() -> None:
    assert decode_bytes(b"") == Decoded("", "utf-8", 0)
