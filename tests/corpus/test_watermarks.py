from __future__ import annotations

import io
import json
from hashlib import sha256
from pathlib import Path

import pytest

from tasks.corpus.watermarks import CHUNK, Mark, fingerprint, read_watermarks, write_watermarks
from tasks.stage import StageError


def test_watermarks_come_back_as_they_were_written(tmp_path: Path) -> None:
    marks = {
        "web": {'a/é "b".jsonl': Mark(size=3, identity="sha256:00"), "c": Mark(size=None, identity="etag:x")},
        "books": {},
    }
    write_watermarks(tmp_path / "watermarks.json", marks)
    assert read_watermarks(tmp_path / "watermarks.json") == marks


def test_the_same_marks_are_the_same_bytes_and_a_file_is_a_line(tmp_path: Path) -> None:
    one, two = Mark(size=1, identity="etag:1"), Mark(size=2, identity="etag:2")
    write_watermarks(tmp_path / "1", {"a": {"x": one, "y": two}, "b": {}})
    write_watermarks(tmp_path / "2", {"b": {}, "a": {"y": two, "x": one}})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    lines = (tmp_path / "1").read_text("utf-8").splitlines()
    assert sum("etag" in line for line in lines) == 2
    json.loads((tmp_path / "1").read_bytes())


def test_no_marks_are_an_empty_object(tmp_path: Path) -> None:
    write_watermarks(tmp_path / "a", {})
    assert json.loads((tmp_path / "a").read_bytes()) == {}
    (tmp_path / "b").write_text("{}")
    assert read_watermarks(tmp_path / "b") == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the file"),
        ("[]", "the file"),
        ('{"web": {"a": {"size": -1, "identity": "x"}}}', "web.a.size"),
        ('{"web": {"a": {"size": 1}}}', "web.a.identity"),
        ('{"web": {"a": {"size": 1, "identity": "x", "more": 1}}}', "web.a.more"),
    ],
)
def test_a_file_that_holds_something_else_is_told(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "w.json").write_text(content)
    with pytest.raises(StageError, match=f"w.json holds no watermarks: {told}"):
        read_watermarks(tmp_path / "w.json")


def test_a_fingerprint_is_the_hash_of_the_bytes_up_to_a_size() -> None:
    content = bytes(range(256)) * (CHUNK // 128)
    assert fingerprint(io.BytesIO(content), None).identity == f"sha256:{sha256(content).hexdigest()}"
    part = fingerprint(io.BytesIO(content), 1000)
    assert (part.size, part.identity) == (1000, f"sha256:{sha256(content[:1000]).hexdigest()}")


@pytest.mark.parametrize(
    ("old", "added", "resume"),
    [
        (b"one\ntwo\n", b"three\n", 8),  # whole lines
        (b"one\ntwo", b"\nthree\n", 7),  # the last line ended without its end
        (b"one\ntwo", b"\r\nthree\n", 7),
        (b"one\ntw", b"o\nthree\n", 4),  # caught while the line was being written
        (b"tw", b"o\n", 0),
        (b"", b"one\n", 0),
        (b"x" * (CHUNK - 1) + b"\n" + b"y" * CHUNK, b"z\n", CHUNK),
        (b"x" * (CHUNK - 1) + b"\n" + b"y" * CHUNK, b"\nz\n", 2 * CHUNK),
    ],
)
def test_a_file_that_grew_is_read_on_from_the_first_line_that_was_not_whole(
    old: bytes, added: bytes, resume: int
) -> None:
    seen = fingerprint(io.BytesIO(old + added), None, len(old))
    if old:
        assert seen.before == f"sha256:{sha256(old).hexdigest()}"
    assert seen.identity == f"sha256:{sha256(old + added).hexdigest()}"
    assert seen.resume == resume


def test_a_file_whose_old_part_changed_has_another_hash_there() -> None:
    old = fingerprint(io.BytesIO(b"one\n"), None)
    assert fingerprint(io.BytesIO(b"two\nthree\n"), None, 4).before != old.identity
