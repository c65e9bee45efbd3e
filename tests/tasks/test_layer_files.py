"""Layers that are none: what is said of each kind of damage, before any work starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.layer_files import MIXTURE_COLUMNS, NEVER_NULL, parts_of, reading
from tasks.records import DOCUMENT_COLUMNS, arrow_schema
from tasks.stage import StageError

SCHEMA = pa.schema([arrow_schema().field(name) for name in DOCUMENT_COLUMNS])
DOCUMENT = dict.fromkeys(DOCUMENT_COLUMNS, "a" * 32) | {"language_score": 1.0, "signals": {}, "meta": {}}


@pytest.fixture
def part(tmp_path: Path) -> Path:
    (tmp_path / "clean/documents").mkdir(parents=True)
    path = tmp_path / "clean/documents/part-00000.parquet"
    pq.write_table(pa.Table.from_pylist([DOCUMENT] * 3, SCHEMA), path)
    return path


def test_a_layer_of_documents_is_its_files(part: Path, tmp_path: Path) -> None:
    pq.write_table(SCHEMA.empty_table(), part.with_name("part-00001.parquet"))
    assert [path.name for path in parts_of(tmp_path / "clean")] == [
        "part-00000.parquet",
        "part-00001.parquet",
    ]


def test_a_column_more_is_none_of_our_business(part: Path, tmp_path: Path) -> None:
    table = pq.read_table(part)
    pq.write_table(table.append_column("more", pa.array([1, 2, 3])), part)
    assert parts_of(tmp_path / "clean") == [part]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: b"",
        lambda raw: b"no Parquet at all",
        lambda raw: raw[:-1],
    ],
    ids=["half", "empty", "another format", "a byte short"],
)
def test_a_file_that_is_not_whole_is_named(
    part: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    part.write_bytes(damage(part.read_bytes()))
    with pytest.raises(StageError, match=r"part-00000\.parquet cannot be read, it is damaged .*run corpus"):
        parts_of(tmp_path / "clean")


@pytest.mark.parametrize("name", DOCUMENT_COLUMNS)
def test_a_column_that_is_missing_is_named(part: Path, tmp_path: Path, name: str) -> None:
    pq.write_table(pq.read_table(part).drop_columns([name]), part)
    with pytest.raises(StageError, match=rf"part-00000\.parquet has no column {name};"):
        parts_of(tmp_path / "clean")


def test_a_layer_of_documents_is_no_mixture(part: Path, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="has no column split, copy, order;"):
        parts_of(tmp_path / "clean", MIXTURE_COLUMNS)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("id", pa.large_string()), ("text", pa.string_view()), ("text", pa.binary()),
        ("source", pa.dictionary(pa.int32(), pa.string())), ("language_score", pa.string()),
    ],
)  # fmt: skip
def test_a_column_of_another_type_is_named(part: Path, tmp_path: Path, name: str, kind: pa.DataType) -> None:
    table = pq.read_table(part)
    place = table.schema.names.index(name)
    pq.write_table(table.set_column(place, name, table.column(name).cast(kind)), part)
    with pytest.raises(StageError, match=rf"part-00000\.parquet: column {name} is of type .*, not "):
        parts_of(tmp_path / "clean")


@pytest.mark.parametrize("name", NEVER_NULL)
def test_a_document_without_what_every_one_has_is_told(part: Path, tmp_path: Path, name: str) -> None:
    pq.write_table(pa.Table.from_pylist([DOCUMENT, DOCUMENT | {name: None}], SCHEMA), part)
    with pytest.raises(StageError, match=rf"part-00000\.parquet: {name} is null in 1 of 2 rows"):
        parts_of(tmp_path / "clean")


def test_a_flipped_byte_is_named_when_it_is_read(part: Path) -> None:
    raw = bytearray(part.read_bytes())
    raw[60:120] = bytes(60)
    part.write_bytes(raw)
    with pytest.raises(StageError, match=r"part-00000\.parquet cannot be read"), reading(part):
        pq.read_table(part)


def test_a_full_disk_is_no_damage_of_what_is_read(part: Path) -> None:
    with pytest.raises(OSError, match="No space left"), reading(part), Path("/dev/full").open("wb") as file:
        file.write(part.read_bytes())
