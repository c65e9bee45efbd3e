"""Text of PDFs, made here by hand."""

from __future__ import annotations

import io

import pytest
from pypdf import PdfReader, PdfWriter

from tasks.corpus.extraction.pdf import UnreadablePdf, pdf_text


def pdf(pages: list[list[str]]) -> bytes:
    """A PDF whose pages have these lines."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for lines in pages:
        drawn = "".join(f"1 0 0 1 72 {720 - 20 * n} Tm ({line}) Tj " for n, line in enumerate(lines))
        stream = f"BT /F1 12 Tf {drawn}ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {len(objects)} 0 R"
        objects.append(f"{page} /Resources << /Font << /F1 3 0 R >> >> >>".encode())
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table)
    return bytes(out)


def encrypted(password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf([["secret"]]))))
    writer.encrypt(user_password=password, owner_password="owner")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_pages_are_joined_and_divided_words_made_whole() -> None:
    assert (
        pdf_text(pdf([["An exam-", "ple of text."], ["Second page."]]))
        == "An example\nof text.\n\nSecond page."
    )


def test_running_headers_and_page_numbers_go() -> None:
    pages = [
        ["My Book", f"Text {word} here.", f"Page {n}"]
        for n, word in enumerate(("one", "two", "three", "four"))
    ]
    assert pdf_text(pdf(pages)) == "Text one here.\n\nText two here.\n\nText three here.\n\nText four here."


def test_an_empty_password_opens_a_pdf() -> None:
    assert pdf_text(encrypted("")) == "secret"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (encrypted("word"), "encrypted"),
        (b"", "broken"),
        (b"%PDF-1.4 nothing more", "broken"),
        (pdf([["text"]])[:200], "broken"),
        (pdf([[]]), "no text in it.*OCR"),
    ],
)
def test_a_pdf_without_a_text_says_why(raw: bytes, reason: str) -> None:
    with pytest.raises(UnreadablePdf, match=reason):
        pdf_text(raw)
