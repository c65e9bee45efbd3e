"""Archives: every member costs only itself, and no name or size can do harm."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile

import pytest

from tasks.corpus.reading.reading import read
from tasks.corpus.reading.records import Quarantined, RawRecord, ReadOptions

MEMBERS = {
    "docs/a.jsonl": b'{"text": "one"}\n{"text": 2}\n{"text": "three"}\n',
    "docs/read me.txt": b"plain text",
    "b.csv": b"text\nfour\n",
}
EXPECTED = {
    "docs/a.jsonl!0": "one",
    "docs/a.jsonl!28": "three",
    "docs/read me.txt": "plain text",
    "b.csv!5": "four",
}
KINDS = ["tar", "zip"]
BLANK = b" " * (2**20 - 1) + b"\n"


def packed(kind: str, members: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=written, mode="w") as archive:
            for name, raw in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(raw)
                archive.addfile(info, io.BytesIO(raw))
    else:
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, raw in members.items():
                archive.writestr(name, raw)
    return written.getvalue()


def contents(raw: bytes, name: str, **options) -> list[RawRecord | Quarantined]:
    return list(read(io.BytesIO(raw), name, ReadOptions(**options)))


def texts(raw: bytes, name: str, **options) -> dict[str, str]:
    return {
        item.position: item.text for item in contents(raw, name, **options) if isinstance(item, RawRecord)
    }


def faults(raw: bytes, name: str, **options) -> dict[str, str]:
    found = [item for item in contents(raw, name, **options) if isinstance(item, Quarantined)]
    assert all("byte " in item.detail for item in found)
    return {item.position: item.rule for item in found}


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.zip", "a.zip.gz", "a.whl"])
def test_members_are_read_by_their_names_at_positions_of_their_own(name: str) -> None:
    raw = packed("tar" if ".t" in name else "zip", MEMBERS)
    raw = gzip.compress(raw) if name.endswith("gz") else raw
    assert texts(raw, name) == EXPECTED
    assert faults(raw, name) == {"docs/a.jsonl!16": "text_not_string"}


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_selected_by_a_glob(kind: str) -> None:
    assert list(texts(packed(kind, MEMBERS), f"a.{kind}", files="docs/*.txt")) == ["docs/read me.txt"]
    assert not faults(packed(kind, MEMBERS), f"a.{kind}", files="docs/*.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_member_is_unpacked(kind: str) -> None:
    raw = packed(kind, {"a.jsonl.gz": gzip.compress(b'{"text": "one"}\n')})
    assert texts(raw, f"a.{kind}") == {"a.jsonl.gz!0": "one"}


@pytest.mark.parametrize("inner", KINDS)
@pytest.mark.parametrize("outer", KINDS)
def test_archives_may_be_nested_once_and_not_deeper(outer: str, inner: str) -> None:
    once = packed(outer, {f"in.{inner}": packed(inner, {"a.txt": b"text"})})
    assert texts(once, f"a.{outer}") == {f"in.{inner}!a.txt": "text"}
    twice = packed(
        outer, {"x.zip": packed("zip", {f"in.{inner}": packed(inner, MEMBERS), "b.txt": b"beside"})}
    )
    assert texts(twice, f"a.{outer}") == {"x.zip!b.txt": "beside"}
    assert faults(twice, f"a.{outer}") == {f"x.zip!in.{inner}": "nested_archive"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["../../x.txt", "/etc/x.txt", "a/../../x.txt", "C:/x.txt", "..\\x.txt"])
def test_a_name_that_leads_outside_is_reported(
    tmp_path, monkeypatch: pytest.MonkeyPatch, kind: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    raw = packed(kind, {name: b"outside", "x.txt": b"inside"})
    assert texts(raw, f"a.{kind}") == {"x.txt": "inside"}
    assert list(faults(raw, f"a.{kind}").values()) == ["unsafe_name"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_gives_two_positions(kind: str) -> None:
    first = packed(kind, {"./a.txt": b"old", "a.txt": b"new"})
    assert texts(first, f"a.{kind}") == {"a.txt": "old", "a.txt#2": "new"}


def test_links_devices_and_fifos_are_reported_if_they_are_asked_for() -> None:
    written = io.BytesIO()
    kinds = {
        "loop": tarfile.SYMTYPE,
        "hard": tarfile.LNKTYPE,
        "fifo": tarfile.FIFOTYPE,
        "dev": tarfile.CHRTYPE,
    }
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, kind in kinds.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "loop"
            archive.addfile(info)
        info = tarfile.TarInfo("a.txt")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"text"))
    assert texts(written.getvalue(), "a.tar") == {"a.txt": "text"}
    assert faults(written.getvalue(), "a.tar") == dict.fromkeys(kinds, "not_a_file")
    assert not faults(written.getvalue(), "a.tar", files="*.txt")


def test_a_symbolic_link_in_a_zip_is_reported() -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert faults(written.getvalue(), "a.zip") == {"link": "not_a_file"}
    assert not texts(written.getvalue(), "a.zip")


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_are_read_whole(format: int) -> None:
    name = "/".join(["däta" * 10] * 10) + "/a.txt"
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=format) as archive:
        info = tarfile.TarInfo(name)
        info.size = 4
        archive.addfile(info, io.BytesIO(b"text"))
    assert texts(written.getvalue(), "a.tar") == {name: "text"}


def test_a_damaged_tar_header_costs_its_member() -> None:
    raw = bytearray(packed("tar", {f"{i}.txt": b"text %d" % i for i in range(5)}))
    raw[2 * 1024 + 5] ^= 0xFF
    assert list(texts(bytes(raw), "a.tar")) == ["0.txt", "1.txt", "3.txt", "4.txt"]
    (fault,) = [item for item in contents(bytes(raw), "a.tar") if isinstance(item, Quarantined)]
    assert fault.rule == "invalid_tar"
    assert "byte 2048:" in fault.detail


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_truncated_archive_costs_its_missing_tail(kind: str, suffix: str) -> None:
    lines = b"".join(b'{"text": "%d"}\n' % (i * 7919 % 10007) for i in range(5000))
    raw = packed(kind, {f"{i}.jsonl": lines for i in range(4)})
    raw = raw[: int(len(raw) * 0.6)]
    if suffix:
        raw = gzip.compress(raw)[:-20]
    found = texts(raw, f"a.{kind}{suffix}")
    by_member = [sum(place.startswith(f"{i}.") for place in found) for i in range(4)]
    if kind == "zip" and suffix:  # it cannot seek, so it is read when it is there as a whole
        assert by_member == [0, 0, 0, 0]
    else:
        assert by_member[:2] == [5000, 5000]
        assert 1000 < by_member[2] < 5000
    assert "source_broken" in faults(raw, f"a.{kind}{suffix}").values()


def test_a_zip_written_to_a_pipe_is_read_without_its_directory() -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in MEMBERS.items():
            archive.writestr(name, raw)
    whole = pipe.getvalue()
    assert texts(whole, "a.zip") == EXPECTED
    assert texts(whole[: whole.index(b"PK\1\2")], "a.zip") == EXPECTED


def test_an_encrypted_member_costs_itself() -> None:
    raw = bytearray(packed("zip", {"secret.txt": b"secret", "a.txt": b"open"}))
    raw[6] |= 1
    raw[raw.index(b"PK\1\2") + 8] |= 1
    assert texts(bytes(raw), "a.zip") == {"a.txt": "open"}
    assert faults(bytes(raw), "a.zip") == {"secret.txt": "encrypted"}


def test_a_member_with_a_wrong_checksum_or_method_costs_itself() -> None:
    raw = packed("zip", {"a.txt": b"text", "b.txt": b"other", "c.txt": b"right"})
    directory = raw.index(b"PK\1\2")
    method = struct.pack("<H", 98)
    second = raw.index(b"PK\1\2", directory + 1)
    raw = raw[: directory + 16] + b"wrng" + raw[directory + 20 : second + 10] + method + raw[second + 12 :]
    assert texts(raw, "a.zip") == {"c.txt": "right"}
    assert faults(raw, "a.zip") == {"a.txt": "source_broken", "b.txt": "unknown_compression"}


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_bombs_are_bounded_in_ratio_length_and_number(kind: str) -> None:
    members = {"bomb.jsonl": b'{"text": "first"}\n' + BLANK * 66, "a.txt": b"text"}
    raw = packed(kind.partition(".")[0], members)
    raw = gzip.compress(raw, 1) if kind == "tar.gz" else raw
    assert "decompression_bomb" in faults(raw, f"a.{kind}", max_ratio=2).values()
    assert faults(raw, f"a.{kind}", max_member_bytes=10_000, max_ratio=1000) == {
        "bomb.jsonl": "member_too_long"
    }
    assert texts(raw, f"a.{kind}", max_member_bytes=10_000, max_ratio=1000) == {"a.txt": "text"}
    small = packed(kind.partition(".")[0], {f"{i}.txt": b"x" for i in range(5)})
    name = f"a.{kind.partition('.')[0]}"
    assert len(texts(small, name, max_members=3)) == 3
    assert list(faults(small, name, max_members=3).values()) == ["too_many_members"]


def test_members_that_overlap_are_bounded_together() -> None:
    big = BLANK * 40
    raw = packed("zip", {"a.jsonl": big})
    end, directory = raw.index(b"PK\5\6"), raw.index(b"PK\1\2")
    entries = b"".join(raw[directory:end].replace(b"a.jsonl", b"%d.jsonl" % i) for i in range(5))
    tail = bytearray(raw[end:])
    tail[8:12] = struct.pack("<HH", 5, 5)
    tail[12:16] = struct.pack("<I", len(entries))
    assert list(faults(raw[:directory] + entries + bytes(tail), "a.zip", max_ratio=50).values()) == [
        "decompression_bomb"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_formats_that_seek_are_read_from_inside(kind: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = io.BytesIO()
    pq.write_table(pa.table({"text": ["one", "two"]}), written)
    raw = packed(kind, {"a.parquet": written.getvalue(), "b.json": json.dumps(["three"]).encode()})
    assert texts(raw, f"a.{kind}") == {"a.parquet!0": "one", "a.parquet!1": "two", "b.json!1": "three"}


def test_a_sparse_file_is_reported_and_the_next_is_found() -> None:
    raw = bytearray(packed("tar", {"sparse": b"abcd", "a.txt": b"text"}))
    raw[156:157] = tarfile.GNUTYPE_SPARSE
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    assert faults(bytes(raw), "a.tar") == {"sparse": "not_a_file"}
    assert texts(bytes(raw), "a.tar") == {"a.txt": "text"}
