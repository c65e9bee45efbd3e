"""WARC and WET: pages with their addresses, in every encoding that crawlers store; a bad one costs itself."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest
import zstandard
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from tasks.corpus.reading.reading import read
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions

PAGE = "<html><body><p>Grüße aus der Mühle</p></body></html>"


def response(url: str, body: bytes, status: str = "200 OK", **headers: str) -> tuple:
    shown = [
        (name.replace("_", "-"), value) for name, value in {"Content_Type": "text/html", **headers}.items()
    ]
    return url, "response", body, StatusAndHeaders(status, shown, protocol="HTTP/1.1"), None


def written(*records: tuple, packed: bool = False) -> bytes:
    stream = io.BytesIO()
    writer = WARCWriter(stream, gzip=packed)
    writer.write_record(writer.create_warcinfo_record("a.warc", {"software": "test"}))
    for url, kind, body, http, content_type in records:
        writer.write_record(
            writer.create_warc_record(
                url,
                kind,
                payload=io.BytesIO(body),
                http_headers=http,
                warc_content_type=content_type or "",
                warc_headers_dict={"WARC-Date": "2026-01-02T03:04:05Z"},
            )
        )
    return stream.getvalue()


def contents(raw: bytes, name: str = "a.warc", **options) -> list[RawRecord | Quarantined]:
    return list(read(io.BytesIO(raw), name, ReadOptions(**options)))


def texts(raw: bytes, name: str = "a.warc", **options) -> list[str]:
    return [item.text for item in contents(raw, name, **options) if isinstance(item, RawRecord)]


def rules(raw: bytes, name: str = "a.warc", **options) -> list[str]:
    found = [item for item in contents(raw, name, **options) if isinstance(item, Quarantined)]
    assert all("byte " in item.detail for item in found)
    return [item.rule for item in found]


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a"])
def test_a_page_has_its_text_its_markup_its_place_and_the_fields_asked_for(name: str) -> None:
    packed = name.endswith("gz")
    raw = written(response("http://a.example/x", PAGE.encode()), packed=packed)
    fields = {"url": "address", "warc_date": "date", "content_type": "type"}
    (record,) = contents(raw, name, keep_fields=fields, id_field="url")
    assert isinstance(record, RawRecord)
    assert (record.text, record.markup, record.identity) == (PAGE, "html", "http://a.example/x")
    assert record.fields == {
        "address": "http://a.example/x",
        "date": "2026-01-02T03:04:05Z",
        "type": "text/html",
    }
    place = raw[int(record.position) :]
    assert (gzip.decompress(place) if packed else place).startswith(b"WARC/1.")


def test_records_about_others_are_passed_over() -> None:
    raw = written(
        (
            "http://a.example/",
            "request",
            b"GET / HTTP/1.1\r\n\r\n",
            None,
            "application/http; msgtype=request",
        ),
        ("http://a.example/", "metadata", b"a: b", None, "application/warc-fields"),
        ("http://a.example/", "revisit", b"", None, "application/http; msgtype=response"),
        ("dns:a.example", "response", b"20260101000000\na.example. 1 IN A 127.0.0.1", None, "text/dns"),
        ("http://a.example/r.txt", "resource", b"a resource", None, "text/plain"),
    )
    assert texts(raw) == ["a resource"]
    assert not rules(raw)


@pytest.mark.parametrize("name", ["a.warc.wet", "a.warc.wet.gz"])
def test_a_conversion_is_plain_text(name: str) -> None:
    raw = written(
        ("http://a.example/", "conversion", "Mühle".encode(), None, "text/plain"), packed=name.endswith("gz")
    )
    (record,) = contents(raw, name)
    assert isinstance(record, RawRecord)
    assert (record.text, record.markup) == ("Mühle", "plain")


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-8", "windows-1252"])
def test_the_character_set_of_the_http_header_is_used(encoding: str) -> None:
    kind = f'text/html; Charset="{encoding}"'
    assert texts(written(response("http://a.example/", PAGE.encode(encoding), Content_Type=kind))) == [PAGE]


def chunked(body: bytes) -> bytes:
    parts = [body[i : i + 10] for i in range(0, len(body), 10)]
    return b"".join(b"%x;x=y\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def bare_deflate(body: bytes) -> bytes:
    state = zlib.compressobj(wbits=-15)
    return state.compress(body) + state.flush()


@pytest.mark.parametrize("is_chunked", [True, False])
@pytest.mark.parametrize(
    ("coding", "code"),
    [
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("gzip", bytes),
        ("deflate", bytes),
        ("br", bytes),
        ("deflate, gzip", lambda body: gzip.compress(zlib.compress(body))),
    ],
)
def test_bodies_are_decoded_if_they_are_not_already(coding: str, code, is_chunked: bool) -> None:
    body = code(PAGE.encode())
    headers = {"Content_Encoding": coding}
    if is_chunked:
        headers["Transfer_Encoding"] = "chunked"
    raw = written(response("http://a.example/", chunked(body) if is_chunked else body, **headers))
    assert texts(raw) == [PAGE]
    left = written(
        response("http://a.example/", body, Transfer_Encoding="chunked", **{"Content_Encoding": coding})
    )
    assert texts(left) == [PAGE]


def test_what_is_no_page_is_told_with_the_reason() -> None:
    raw = written(
        response("http://a.example/1", b"\x89PNG\r\n\x1a\n", Content_Type="image/png"),
        response("http://a.example/2", b"gone", "404 Not Found"),
        response("http://a.example/3", b"", "301 Moved"),
        response("http://a.example/4", bytes(range(256)) * 10),
        response("http://a.example/5", gzip.compress(PAGE.encode())[:-10], Content_Encoding="gzip"),
        response("http://a.example/6", b"\x93\x01\xff" * 9, Content_Encoding="br"),
        response("http://a.example/7", gzip.compress(bytes(2**17)), Content_Encoding="gzip"),
        ("http://a.example/8", "continuation", b"rest", None, "text/plain"),
        response("http://a.example/9", PAGE.encode()),
    )
    assert texts(raw, max_record_bytes=2**16) == [PAGE]
    assert rules(raw, max_record_bytes=2**16) == [
        "not_text",
        "http_status",
        "http_status",
        "not_text",
        "source_broken",
        "unknown_compression",
        "record_too_long",
        "unknown_record",
    ]


def three(packed: bool) -> bytes:
    return written(*(response(f"http://a.example/{i}", PAGE.encode()) for i in range(3)), packed=packed)


def test_a_record_over_the_limit_costs_itself() -> None:
    long = response("http://a.example/", b"x" * 10_000)
    raw = written(long, response("http://b.example/", PAGE.encode()))
    assert (texts(raw, max_record_bytes=2000), rules(raw, max_record_bytes=2000)) == (
        [PAGE],
        ["record_too_long"],
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [(b"Content-Length: ", b"Content-Length: x"), (b"WARC/1.", b"XXXX/1."), (b"Content-Length: ", b"X: ")],
)
def test_a_damaged_record_header_costs_its_record(old: bytes, new: bytes) -> None:
    raw = three(packed=False)
    second = raw.index(b"WARC/1.", raw.index(b"http://a.example/0"))
    at = raw.index(old, second)
    damaged = raw[:at] + new + raw[at + len(old) :]
    assert texts(damaged) == [PAGE, PAGE]
    assert rules(damaged) == ["invalid_warc"]


def test_a_wrong_length_costs_little() -> None:
    raw = three(packed=False)
    second = raw.index(b"WARC/1.", raw.index(b"http://a.example/0"))
    at = raw.index(b"Content-Length: ", second) + len(b"Content-Length: ")
    damaged = raw[:at] + b"7" + raw[raw.index(b"\r\n", at) :]
    assert texts(damaged) == [PAGE, PAGE]
    assert set(rules(damaged)) == {"invalid_warc"}


def test_a_damaged_member_of_a_gzipped_file_costs_itself() -> None:
    raw = bytearray(three(packed=True))
    places = [int(item.position) for item in contents(bytes(raw), "a.warc.gz")]
    raw[places[1] + 40] ^= 0xFF
    found = contents(bytes(raw), "a.warc.gz")
    assert [item.position for item in found if isinstance(item, RawRecord)] == [
        str(places[0]),
        str(places[2]),
    ]
    assert [item.rule for item in found if isinstance(item, Quarantined)] == ["source_broken"]


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_a_truncated_file_costs_its_tail(name: str) -> None:
    raw = three(packed=name.endswith("gz"))
    assert texts(raw[:-30], name) == [PAGE, PAGE]
    assert rules(raw[:-30], name) == ["source_broken"]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_a_file_that_was_compressed_as_a_whole_has_a_place_for_each_record(compress) -> None:
    raw = compress(three(packed=False))
    found = contents(raw, "a.warc.gz" if compress is gzip.compress else "a.warc.zst")
    assert [item.text for item in found if isinstance(item, RawRecord)] == [PAGE] * 3
    assert len({item.position for item in found}) == 3
