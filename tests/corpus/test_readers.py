from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tasks.corpus.readers import Quarantined, RawRecord, read_json_lines, read_whole_file

LIMIT = 2**20


def read(path: Path, limit: int = LIMIT) -> list[RawRecord | Quarantined]:
    return list(read_json_lines(path, "text", {"lang": "language"}, limit))


def texts(path: Path) -> list[str]:
    return [record.text for record in read(path) if isinstance(record, RawRecord)]


def faults(path: Path, limit: int = LIMIT) -> list[Quarantined]:
    return [record for record in read(path, limit) if isinstance(record, Quarantined)]


def test_one_invalid_byte_costs_one_record_and_its_offset_is_told(tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"document {i}"}).encode() for i in range(401)]
    lines[200] = b'{"text": "caf\xe9"}'
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert len(texts(path)) == 400
    (fault,) = faults(path)
    offset = sum(len(line) + 1 for line in lines[:200]) + lines[200].index(b"\xe9")
    assert (fault.rule, fault.position) == ("invalid_utf8", "201")
    assert f"byte {offset}:" in fault.detail


def test_bom_crlf_and_blank_lines_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "one"}\r\n\r\n{"text": "two"}\r\n{"text": "three"}\n\n')
    assert texts(path) == ["one", "two", "three"]
    assert not faults(path)


def test_a_last_line_without_a_newline_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "one"}\n{"text": "two"}')
    assert texts(path) == ["one", "two"]


@pytest.mark.parametrize(
    ("line", "rule", "told"),
    [
        ('{"text": 123}', "text_not_string", "int"),
        ('{"text": null}', "text_not_string", "NoneType"),
        ('{"text": ["a"]}', "text_not_string", "list"),
        ('{"text": {"a": 1}}', "text_not_string", "dict"),
        ('{"body": "x", "title": "y"}', "no_text", "body, title"),
        ('["text"]', "not_an_object", "list"),
        ('{"text": "x"', "invalid_json", "delimiter"),
        ("[" * 100_000, "invalid_json", ""),
    ],
)
def test_a_record_that_is_wrong_is_quarantined_and_the_file_goes_on(
    tmp_path: Path, line: str, rule: str, told: str
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "before"}}\n{line}\n{{"text": "after"}}\n', "utf-8")
    assert texts(path) == ["before", "after"]
    (fault,) = faults(path)
    assert fault.rule == rule
    assert told in fault.detail


def test_lone_surrogates_and_nul_are_replaced_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\ud800b\\u0000c \\ud83d\\ude00"}\n', "utf-8")
    (record,) = read(path)
    assert isinstance(record, RawRecord)
    assert record.text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c \N{GRINNING FACE}"
    assert record.replaced_characters == 2


def test_a_line_over_the_limit_is_quarantined_without_losing_the_next(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "x" * 5000}) + '\n{"text": "next"}\n', "utf-8")
    (fault,) = faults(path, 1000)
    assert (fault.rule, fault.position) == ("record_too_long", "1")
    assert [r.text for r in read(path, 1000) if isinstance(r, RawRecord)] == ["next"]


def test_a_truncated_gzip_gives_what_comes_before_the_break(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    whole = gzip.compress(b"".join(b'{"text": "%d"}\n' % i for i in range(20_000)))
    path.write_bytes(whole[: len(whole) // 2])
    assert len(texts(path)) > 1000
    (fault,) = faults(path)
    assert fault.rule == "source_broken"


def test_further_fields_are_kept_under_the_names_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "x", "lang": "en", "other": 1}\n', "utf-8")
    (record,) = read(path)
    assert isinstance(record, RawRecord)
    assert record.fields == {"language": "en"}


def test_a_whole_file_in_another_encoding_is_quarantined_with_the_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"caf\xe9")
    (fault,) = read_whole_file(path, LIMIT)
    assert isinstance(fault, Quarantined)
    assert "byte 3" in fault.detail
