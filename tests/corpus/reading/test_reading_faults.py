"""One bad record costs that record, one break its tail: in every format and every compression."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from tasks.corpus.reading.reading import read, row_groups, split_kind
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions, Span

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
    ".bz2": lambda raw: bz2.compress(raw, 1),
    ".xz": lambda raw: lzma.compress(raw, preset=0),
}
PACKED = [suffix for suffix in COMPRESSIONS if suffix]


def contents(raw: bytes, name: str, **options) -> list[RawRecord | Quarantined]:
    return list(read(io.BytesIO(raw), name, ReadOptions(**options)))


def texts(raw: bytes, name: str, **options) -> list[str]:
    return [item.text for item in contents(raw, name, **options) if isinstance(item, RawRecord)]


def faults(raw: bytes, name: str, **options) -> list[Quarantined]:
    return [item for item in contents(raw, name, **options) if isinstance(item, Quarantined)]


def json_lines(values: list) -> bytes:
    return b"".join(json.dumps({"text": value}).encode() + b"\n" for value in values)


def json_array(values: list) -> bytes:
    return json.dumps([{"text": value} for value in values]).encode()


def table(values: list, delimiter: str = ",") -> bytes:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=delimiter).writerows(
        [["id", "text"], *([i, v] for i, v in enumerate(values))]
    )
    return written.getvalue().encode()


def parquet(values: list, **options) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.table({"text": values, "id": list(range(len(values)))}), written, **options)
    return written.getvalue()


def plain_lines(values: list[str]) -> bytes:
    return "\n".join(values).encode()


WRITERS: dict[str, Callable[[list], bytes]] = {
    "a.jsonl": json_lines,
    "a.json": json_array,
    "a.csv": table,
    "a.tsv": lambda values: table(values, "\t"),
    "a.parquet": parquet,
}


@pytest.mark.parametrize("suffix", COMPRESSIONS)
@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read_in_every_compression(name: str, suffix: str) -> None:
    values = ["one", "two, three", "four\nlines \N{GREEK SMALL LETTER ALPHA}", '"five"', ""]
    raw = COMPRESSIONS[suffix](WRITERS[name](values))
    assert texts(raw, name + suffix) == values
    assert not faults(raw, name + suffix)


@pytest.mark.parametrize("suffix", COMPRESSIONS)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.txt"])
def test_one_invalid_byte_costs_one_record_and_its_offset_is_told(name: str, suffix: str) -> None:
    values = [f"document {i}" for i in range(401)]
    write = WRITERS.get(name, plain_lines)
    raw = write(values).replace(b"document 200", b"docu\xe9ent 200")
    found = contents(COMPRESSIONS[suffix](raw), name + suffix, format="auto" if name != "a.txt" else "lines")
    (fault,) = [item for item in found if isinstance(item, Quarantined)]
    assert [item.text for item in found if isinstance(item, RawRecord)] == values[:200] + values[201:]
    assert fault.rule == "invalid_utf8"
    assert f"byte {raw.index(0xE9)}:" in fault.detail


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.lines"])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_bom_crlf_and_blank_lines_lose_nothing(name: str, newline: bytes) -> None:
    values = ["one", "two", "three"]
    raw = WRITERS.get(name, plain_lines)(values).replace(b"\r\n", b"\n").replace(b"\n", newline + newline)
    raw = b"\xef\xbb\xbf" + raw + newline + newline
    format = "lines" if name == "a.lines" else "auto"
    assert texts(raw, name, format=format) == values
    assert not faults(raw, name, format=format)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv"])
def test_a_table_in_utf_16_is_known_by_its_mark(name: str, encoding: str) -> None:
    values = ["one \N{LATIN SMALL LETTER U WITH OGONEK}\u0a0a", "two"]
    assert texts(WRITERS[name](values).decode().encode(encoding), name) == values


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv"])
def test_an_encoding_that_is_told_is_used(name: str) -> None:
    raw = WRITERS[name](["caf?"]).replace(b"?", b"\xe9")
    assert texts(raw, name, encoding="latin-1") == ["café"]


@pytest.mark.parametrize(
    ("record", "rule", "told"),
    [
        ('{"text": 123}', "text_not_string", "int"),
        ('{"text": null}', "text_not_string", "NoneType"),
        ('{"text": ["a"]}', "text_not_string", "list"),
        ('{"text": {"a": 1}}', "text_not_string", "dict"),
        ('{"body": "x", "title": "y"}', "no_text", "body, title"),
        ("{}", "no_text", ""),
        ('["text"]', "not_an_object", "list"),
        ("12", "not_an_object", "int"),
        ('{"text": "x" "y"}', "invalid_json", "delimiter"),
        ('{"text": nope}', "invalid_json", "Expecting value"),
        ('{"text": "\t"}', "invalid_json", "control character"),
        ('{"text": ' + "9" * 5000 + "}", "invalid_json", "digits"),
        ('{"text": ' + "[" * 20_000 + "]" * 20_000 + "}", "invalid_json", "nested too deep"),
    ],
    ids=range(13),
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_record_that_is_wrong_is_quarantined_and_the_file_goes_on(
    name: str, record: str, rule: str, told: str
) -> None:
    before, after = '{"text": "before"}', '{"text": "after"}'
    raw = (
        f"{before}\n{record}\n{after}\n" if name == "a.jsonl" else f"[{before},{record}, {after}]"
    ).encode()
    assert texts(raw, name) == ["before", "after"]
    (fault,) = faults(raw, name)
    assert fault.rule == rule
    assert told in fault.detail
    assert "byte " in fault.detail


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_lone_surrogates_and_nul_are_replaced_and_counted(name: str) -> None:
    raw = b'{"text": "a\\ud800b\\u0000c \\ud83d\\ude00"}'
    (record,) = contents(raw, name)
    assert isinstance(record, RawRecord)
    assert record.text == f"a{REPLACEMENT}b{REPLACEMENT}c \N{GRINNING FACE}"
    assert record.replaced_characters == 2


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.lines"])
def test_nul_bytes_are_replaced_and_counted(name: str) -> None:
    raw = WRITERS.get(name, plain_lines)(["a\0b", "c"])
    found = contents(raw, name, format="lines" if name == "a.lines" else "auto")
    assert [item.text for item in found if isinstance(item, RawRecord)] == [f"a{REPLACEMENT}b", "c"]
    assert isinstance(found[0], RawRecord)
    assert found[0].replaced_characters == 1


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.parquet", "a.lines"])
def test_a_record_over_the_limit_is_quarantined_without_losing_the_next(name: str) -> None:
    raw = WRITERS.get(name, plain_lines)(["x" * 5000, "next"])
    format = "lines" if name == "a.lines" else "auto"
    (fault,) = faults(raw, name, max_record_bytes=1000, format=format)
    assert fault.rule == "record_too_long"
    assert texts(raw, name, max_record_bytes=1000, format=format) == ["next"]


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.lines"])
def test_a_compressed_file_that_breaks_off_gives_what_comes_before(name: str, suffix: str) -> None:
    values = [f"{i} {i * 7919 % 10007} {i * 104729 % 1000003}" for i in range(20_000)]
    format = "lines" if name == "a.lines" else "auto"
    whole = COMPRESSIONS[suffix](WRITERS.get(name, plain_lines)(values))
    raw = whole[: len(whole) * 3 // 4]
    items = contents(raw, name + suffix, format=format)
    found = [item.text for item in items if isinstance(item, RawRecord)]
    assert len(found) > 2_000
    assert found == values[: len(found)]
    broken = [item for item in items if isinstance(item, Quarantined) and item.rule == "source_broken"]
    assert len(broken) == 1
    assert "byte " in broken[0].detail


@pytest.mark.parametrize("suffix", PACKED)
def test_a_flipped_byte_costs_nothing_of_what_comes_before(suffix: str) -> None:
    values = [f"{i} {i * 7919 % 10007} {i * 104729 % 1000003}" for i in range(20_000)]
    raw = bytearray(COMPRESSIONS[suffix](json_lines(values)))
    raw[len(raw) // 2] ^= 0xFF
    found = contents(bytes(raw), "a.jsonl" + suffix)
    assert any(isinstance(item, Quarantined) and item.rule == "source_broken" for item in found)
    assert sum(isinstance(item, RawRecord) for item in found) > 2_000


def test_gzip_gives_every_byte_before_the_break() -> None:
    raw = json_lines([f"{i}" for i in range(1000)])
    broken = bytearray(gzip.compress(raw))
    broken[-8] ^= 1  # the checksum, after all that there is
    assert len(texts(bytes(broken), "a.jsonl.gz")) == 1000
    (fault,) = faults(bytes(broken), "a.jsonl.gz")
    assert fault.position == str(len(raw))


@pytest.mark.parametrize("suffix", PACKED)
def test_several_members_and_padding_are_one_file(suffix: str) -> None:
    compress = COMPRESSIONS[suffix]
    raw = b"".join(compress(json_lines([word])) for word in ("one", "two", "three"))
    assert texts(raw, "a.jsonl" + suffix) == ["one", "two", "three"]
    assert texts(raw + bytes(1024), "a.jsonl" + suffix) == ["one", "two", "three"]
    assert not faults(raw + bytes(1024), "a.jsonl" + suffix)


@pytest.mark.parametrize("suffix", PACKED)
def test_garbage_after_the_end_is_reported(suffix: str) -> None:
    raw = COMPRESSIONS[suffix](json_lines(["one"])) + b"garbage at the end"
    assert texts(raw, "a.jsonl" + suffix) == ["one"]
    (fault,) = faults(raw, "a.jsonl" + suffix)
    assert (fault.rule, "something else follows" in fault.detail) == ("source_broken", True)


def test_a_skippable_zstd_frame_is_skipped() -> None:
    frame = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"index"
    packed = COMPRESSIONS[".zst"](json_lines(["one"]))
    assert texts(frame + packed + frame, "a.jsonl.zst") == ["one"]


@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("raw", [b'{"text": "plain"}\n', b""])
def test_a_name_that_lies_about_compression_is_told_with_both(suffix: str, raw: bytes) -> None:
    (fault,) = contents(raw, "a.jsonl" + suffix)
    assert isinstance(fault, Quarantined)
    assert fault.rule == "wrong_compression"
    assert fault.detail.startswith("byte 0: ")


@pytest.mark.parametrize("suffix", PACKED)
def test_compression_that_the_name_hides_is_undone(suffix: str) -> None:
    assert texts(COMPRESSIONS[suffix](json_lines(["one"])), "a.jsonl") == ["one"]
    assert texts(COMPRESSIONS[suffix](COMPRESSIONS[suffix](json_lines(["one"]))), "a.jsonl" + suffix) == [
        "one"
    ]


@pytest.mark.parametrize("suffix", PACKED)
def test_a_bomb_is_bounded(suffix: str) -> None:
    compressed = COMPRESSIONS[suffix](json_lines(["first"]) + (b" " * (2**20 - 1) + b"\n") * 65)
    found = contents(compressed, "a.jsonl" + suffix, max_ratio=10)
    assert [type(item) for item in found] == [RawRecord, Quarantined]
    assert isinstance(found[1], Quarantined)
    assert found[1].rule == "decompression_bomb"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", "bytes"),
        ("A.JSONL", "bytes"),
        ("a.parquet", "row_groups"),
        ("a.jsonl.gz", None),
        ("a.csv", None),
        ("a.json", None),
        ("a.zip", None),
        ("a.tar.zst", None),
        ("a.txt", None),
        ("a.pdf", None),
    ],
)
def test_a_file_splits_where_its_format_allows(name: str, kind: str | None) -> None:
    assert split_kind(name, ReadOptions()) == kind


def test_a_wide_encoding_does_not_split() -> None:
    assert split_kind("a.jsonl", ReadOptions(encoding="utf-16")) is None
    assert split_kind("a.txt", ReadOptions(format="lines")) == "bytes"


def spans(raw: bytes, name: str, size: int, **options) -> list[RawRecord | Quarantined]:
    return [
        item
        for start in range(0, len(raw), size)
        for item in read(io.BytesIO(raw), name, ReadOptions(**options), Span(start, start + size))
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 16, 50, 1000])
@pytest.mark.parametrize("format", ["jsonl", "lines"])
def test_the_spans_of_a_file_give_its_records_at_the_same_positions(format: str, size: int) -> None:
    raw = (
        b'\xef\xbb\xbf{"text": "one"}\r\n\n{"text": 2}\n{"text": "'
        + b"x" * 100
        + b'"}\n\n{"text": "\xff"}\n{"text"'
    )
    for limit in (50, 2**20):
        whole = contents(raw, "a", format=format, max_record_bytes=limit)
        assert len(whole) >= 4
        assert spans(raw, "a", size, format=format, max_record_bytes=limit) == whole


@pytest.mark.parametrize(
    "raw",
    [gzip.compress(json_lines(["a", "b"])), json_lines(["a"]).decode().encode("utf-16")],
    ids=["gzip", "utf-16"],  # not the bytes: gzip's hold the time, and the workers of a run name tests alike
)
def test_the_spans_of_a_file_that_does_not_split_after_all_give_it_once(raw: bytes) -> None:
    assert spans(raw, "a.jsonl", 10) == contents(raw, "a.jsonl")
    assert texts(raw, "a.jsonl")


def test_the_row_groups_of_a_file_give_its_rows_at_the_same_positions() -> None:
    raw = parquet([str(i) for i in range(1000)], row_group_size=300)
    assert row_groups(io.BytesIO(raw)) == 4
    parts = [
        item for i in range(4) for item in read(io.BytesIO(raw), "a.parquet", ReadOptions(), Span(i, i + 1))
    ]
    assert parts == contents(raw, "a.parquet")
    assert [item.position for item in parts] == [str(i) for i in range(1000)]


@pytest.mark.parametrize("name", WRITERS)
def test_fields_are_kept_under_the_names_asked_for(name: str) -> None:
    if name == "a.jsonl":
        raw = b'{"text": "x", "id": 0}'
    elif name == "a.json":
        raw = b'[{"text": "x", "id": 0}]'
    else:
        raw = WRITERS[name](["x"])
    (record,) = contents(raw, name, keep_fields={"id": "number", "none": "none"}, id_field="id")
    assert isinstance(record, RawRecord)
    assert (record.fields, record.identity) == ({"number": "0"}, "0")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_dotted_names_reach_nested_objects_unless_a_name_has_the_dot_itself(name: str) -> None:
    nested = {"message": {"content": "hello", "by": {"name": "Ann"}}, "a.b": "dot", "a": {"b": "nested"}}
    if name == "a.parquet":
        written = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([nested, {**nested, "message": None}]), written)
        raw = written.getvalue()
    else:
        raw = json.dumps(nested).encode()
    options = {"text_field": "message.content", "keep_fields": {"message.by.name": "by", "a.b": "dotted"}}
    record = contents(raw, name, **options)[0]
    assert isinstance(record, RawRecord)
    assert record.text == "hello"
    assert record.fields == {"by": "Ann", "dotted": "dot"}
    if name == "a.parquet":
        assert [fault.rule for fault in faults(raw, name, **options)] == ["text_not_string"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_a_column_that_is_null_for_a_thousand_rows_and_then_is_not_just_works(name: str) -> None:
    rows = [{"text": "x", "note": None}] * 1500 + [{"text": "y", "note": "here"}]
    if name == "a.parquet":
        written = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), written)
        raw = written.getvalue()
    else:
        raw = b"\n".join(json.dumps(row).encode() for row in rows)
    found = contents(raw, name, keep_fields={"note": "note"})
    assert [item.fields for item in found if isinstance(item, RawRecord)] == [{}] * 1500 + [{"note": "here"}]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.parquet"])
def test_nothing_in_nothing_out(name: str) -> None:
    raw = parquet([]) if name == "a.parquet" else b""
    assert contents(raw, name) == []


@pytest.mark.parametrize(
    "name", [*WRITERS, "a.txt", "a.md", "a.html", "a.py", "a", "a.warc", "a.zip", "a.tar"]
)
@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_noise_never_raises_and_is_never_a_document(name: str, suffix: str) -> None:
    import random

    noise = random.Random(1).randbytes(100_000)
    found = contents(COMPRESSIONS[suffix](noise), name + suffix)
    assert found
    assert all(isinstance(item, Quarantined) for item in found)
    assert all("byte " in item.detail for item in found if isinstance(item, Quarantined))
