"""What a file is taken for, and how the formats that have their own faults behave."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.reading.formats import DOCUMENT_FORMATS, parse_name, sniff
from tasks.corpus.reading.reading import read
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions


def contents(raw: bytes, name: str, **options) -> list[RawRecord | Quarantined]:
    return list(read(io.BytesIO(raw), name, ReadOptions(**options)))


def texts(raw: bytes, name: str, **options) -> list[str]:
    return [item.text for item in contents(raw, name, **options) if isinstance(item, RawRecord)]


def rules(raw: bytes, name: str, **options) -> list[str]:
    return [item.rule for item in contents(raw, name, **options) if isinstance(item, Quarantined)]


@pytest.mark.parametrize(
    ("name", "raw", "markup"),
    [
        ("a.txt", b"text", "plain"),
        ("a.MD.gz", b"# text", "markdown"),
        ("a.rst", b"text", "rst"),
        ("a.html", b"<p>text", "html"),
        ("a/b.c", b"int x;", "code"),
        ("Makefile", b"all:", "code"),
        ("ls.1", b'.\\" comment\n.TH LS 1', "roff"),
        ("git.3pm", b"'\\\" t\n.TH X 3", "roff"),
        ("app.log.1", b"a line of a log", "plain"),
        ("README", b"read me", "plain"),
        ("page", b"\xef\xbb\xbf\n<!DOCTYPE html><p>x", "html"),
        ("script", b"#!/bin/sh\n", "code"),
    ],
)
def test_a_file_is_one_document_of_its_kind(name: str, raw: bytes, markup: str) -> None:
    import gzip

    shown = raw.removeprefix(b"\xef\xbb\xbf").decode()
    (record,) = contents(gzip.compress(raw) if name.endswith("gz") else raw, name)
    assert isinstance(record, RawRecord)
    assert (record.position, record.text, record.markup) == ("0", shown, markup)


@pytest.mark.parametrize(
    ("raw", "format"),
    [
        (b'{"text": "a"}\n{"text": "b"}\n', "jsonl"),
        (b'{\n "text": "a"}', "json"),
        (b'[{"text": "a"}]', "json"),
        (b'["a", "b"]', "json"),
        (b"[1] a list of references", "text"),
        (b"%PDF-1.7", "pdf"),
        (b"PAR1", "parquet"),
        (b"WARC/1.0\r\n", "warc"),
        (b"", "text"),
        (bytes(1000), None),
        (b"\x7fELF", None),
        ("text in UTF-16".encode("utf-16"), "text"),
        ("text in UTF-16 without a mark".encode("utf-16-le"), "text"),
        ("Текст".encode("koi8-r") * 100, "text"),
    ],
)
def test_the_first_bytes_decide_where_the_name_does_not(raw: bytes, format: str | None) -> None:
    assert sniff(raw) == format


def test_suffixes_are_taken_apart_from_the_end() -> None:
    name = parse_name("x/Docs.v1.JSONL.Zst")
    assert (name.compression, name.container, name.format) == ("zstd", None, "jsonl")
    assert parse_name("a.tgz").container == parse_name("a.tar.gz").container == "tar"
    assert parse_name(".gz").compression is None


@pytest.mark.parametrize("format", [name for name in DOCUMENT_FORMATS if name != "pdf"])
def test_binary_data_is_no_document_of_any_format(format: str) -> None:
    for raw in (b"\x89PNG\r\n\x1a\n" + bytes(100), bytes(10_000), b"PK\x03\x04" + bytes(100)):
        assert rules(raw, "a.bin", format=format) == ["not_text"]


@pytest.mark.parametrize(
    "raw", ["Grüße aus München".encode("iso-8859-1"), "Grüße aus München".encode("utf-16")]
)
def test_a_document_in_another_encoding_has_its_characters(raw: bytes) -> None:
    assert texts(raw, "a.txt") == ["Grüße aus München"]


@pytest.mark.parametrize("format", DOCUMENT_FORMATS)
def test_a_document_over_the_limit_is_quarantined(format: str) -> None:
    assert rules(b"%PDF-" + b"x" * 2000, "a", format=format, max_record_bytes=1000)[0] in (
        "record_too_long",
        "not_text",
    )
    assert rules(b"x" * 2000, "a", format=format, max_record_bytes=1000) == ["record_too_long"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_of_a_table_is_found_by_the_column_that_is_wanted(delimiter: str) -> None:
    other = ";" if delimiter == "," else ","
    raw = f"a{other}b{other}c{delimiter}text\n1{delimiter}x\n".encode()
    assert texts(raw, "a.csv") == ["x"]
    assert texts(raw, "a.csv", delimiter=delimiter) == ["x"]


def test_fields_with_newlines_quotes_and_great_length_are_read() -> None:
    raw = b'text,n\n"a\r\nb ""c""",1\n' + b'"' + b"x" * 200_000 + b'",2\n'
    assert texts(raw, "a.csv") == ['a\r\nb "c"', "x" * 200_000]


def test_a_ragged_row_costs_itself_and_is_told_with_its_offset() -> None:
    raw = b"text,n\none,1\ntwo\nthree,3,3\nfour,4\n"
    assert texts(raw, "a.csv") == ["one", "four"]
    found = [item for item in contents(raw, "a.csv") if isinstance(item, Quarantined)]
    assert [(item.rule, item.position) for item in found] == [("ragged_row", "13"), ("ragged_row", "17")]
    assert "byte 17:" in found[1].detail


@pytest.mark.parametrize("bad", [b'"open,2', b'"open" x,2'])
def test_a_quote_without_its_pair_costs_its_line(bad: bytes) -> None:
    rows = b"".join(b"row %d,%d\n" % (i, i) for i in range(100))
    raw = b"text,n\nfirst,1\n" + bad + b"\n" + rows
    assert texts(raw, "a.csv") == ["first", *(f"row {i}" for i in range(100))]
    assert rules(raw, "a.csv") == ["invalid_csv"]


def test_quotes_that_never_pair_take_no_time_that_grows_faster_than_the_file() -> None:
    raw = b"text,n\n" + b'a"b,"c\n' * 20_000
    assert "invalid_csv" in rules(raw, "a.csv")


def test_a_table_without_the_column_is_told_once() -> None:
    raw = b"body,n\n" + b"x,1\n" * 1000
    (fault,) = contents(raw, "a.csv")
    assert isinstance(fault, Quarantined)
    assert (fault.rule, "body, n" in fault.detail) == ("no_text", True)
    assert rules(parquet({"body": ["x"] * 1000}), "a.parquet") == ["no_text"]


def parquet(columns: dict, **options) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table(columns), written, **options)
    return written.getvalue()


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string()), pa.string_view()],
    ids=str,
)
def test_a_column_of_any_kind_of_string_is_read_and_its_nulls_cost_their_rows(kind: pa.DataType) -> None:
    column = pa.array(["one", None, "three"]).cast(pa.string())
    column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
    raw = parquet({"text": column})
    assert texts(raw, "a.parquet") == ["one", "three"]
    assert rules(raw, "a.parquet") == ["text_not_string"]


def test_bytes_that_are_not_utf_8_cost_their_row() -> None:
    raw = parquet({"text": pa.array([b"one", b"t\xffo", b"three"])})
    for column in (raw, _as_string(raw)):
        assert texts(column, "a.parquet") == ["one", "three"]
        assert rules(column, "a.parquet") == ["invalid_utf8"]


def _as_string(raw: bytes) -> bytes:
    binary = pq.read_table(io.BytesIO(raw)).column("text").combine_chunks()
    chunk = binary.chunk(0) if isinstance(binary, pa.ChunkedArray) else binary
    return parquet({"text": pa.Array.from_buffers(pa.string(), len(chunk), chunk.buffers())})


def test_a_column_that_is_no_text_costs_its_rows() -> None:
    assert rules(parquet({"text": [1, 2]}), "a.parquet") == ["text_not_string"] * 2
    assert rules(parquet({"text": [["a"], ["b"]]}), "a.parquet") == ["text_not_string"] * 2


def test_a_damaged_footer_costs_the_file_and_a_damaged_row_group_itself() -> None:
    values = [f"{i} " * 50 for i in range(3000)]
    raw = parquet({"text": values}, row_group_size=1000, use_dictionary=False)
    assert rules(raw[:-20], "a.parquet") == ["source_broken"]
    second = pq.ParquetFile(io.BytesIO(raw)).metadata.row_group(1).column(0).data_page_offset
    damaged = raw[:second] + b"\xff" * 64 + raw[second + 64 :]
    assert texts(damaged, "a.parquet") == values[:1000] + values[2000:]
    (fault,) = [item for item in contents(damaged, "a.parquet") if isinstance(item, Quarantined)]
    assert (fault.rule, fault.position) == ("source_broken", "1000")
    assert f"byte {second}:" in fault.detail


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"text": "a"}', ["a"]),
        ('[{"text": "a"}, {"text": "b"}]', ["a", "b"]),
        ('["a", "b[{\\"]", "c\\\\"]', ["a", 'b[{"]', "c\\"]),
        ('{"text": "a"}\n{"text": "b"}', ["a", "b"]),
        ('[{"text": "a"}]\n["b"]', ["a", "b"]),
        ('[{"text": "a"},]', ["a"]),
        ("[]", []),
        ('{"text": "a", "text": "b"}', ["b"]),
    ],
)
def test_json_is_read_value_by_value(raw: str, expected: list[str]) -> None:
    assert texts(raw.encode(), "a.json") == expected
    assert not rules(raw.encode(), "a.json")


def test_values_that_lie_over_the_borders_of_buffers_are_whole() -> None:
    values = ['"\\' * (i * 997 % 5000) + "é\n[{," for i in range(400)]
    for ascii_only in (True, False):
        raw = json.dumps([{"text": value} for value in values], ensure_ascii=ascii_only).encode()
        found = contents(raw, "a.json")
        assert [item.text for item in found if isinstance(item, RawRecord)] == values
        assert all(raw[int(item.position) :].startswith(b'{"text"') for item in found)


def test_an_array_that_does_not_end_is_reported() -> None:
    assert texts(b'[{"text": "a"}, {"text": "b"}', "a.json") == ["a", "b"]
    assert rules(b'[{"text": "a"}, {"text": "b"}', "a.json") == ["source_broken"]
    assert rules(b'[{"text": "a"}, {"text": "b', "a.json") == ["invalid_json", "source_broken"]


def test_a_pdf_is_one_document_and_one_without_text_or_order_is_told() -> None:
    from pypdf import PdfWriter

    written = io.BytesIO()
    writer = PdfWriter()
    writer.add_blank_page(width=100, height=100)
    writer.write(written)
    for raw in (written.getvalue(), written.getvalue()[:100], b"%PDF-1.7\nnothing"):
        (found,) = contents(raw, "a.pdf")
        assert found.position == "0"
        assert isinstance(found, RawRecord) or found.rule == "unreadable_pdf"
    assert rules(b"%PDF-1.7\nnothing", "a.pdf") == ["unreadable_pdf"]
