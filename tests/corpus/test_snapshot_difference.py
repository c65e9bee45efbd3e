from __future__ import annotations

import io
import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.snapshot_difference import compare_documents

COLUMNS = ("id", "content", "source", "domain", "kind", "language")
SCHEMA = pa.schema([*((name, pa.string()) for name in COLUMNS), ("copy", pa.int64())])


def row(number: int, content: str = "c", source: str = "books", language: str | None = "en", copy: int = 0):
    name = f"{number * 2654435761 % 2**32:08x}{number:024x}"
    return {"id": name, "content": content, "source": source, "domain": "general", "kind": "book",
            "language": language, "copy": copy}  # fmt: skip


def write(path: Path, rows: list[dict], parts: int = 1) -> list[Path]:
    paths = [path.with_name(f"{path.name}-{part}") for part in range(parts)]
    for part, file in enumerate(paths):
        pq.write_table(pa.Table.from_pylist(rows[part::parts], SCHEMA), file)
    return paths


def test_added_removed_and_changed_documents_are_counted_by_group(tmp_path: Path) -> None:
    before = [row(1), row(2), row(3, source="web"), row(4, language=None)]
    after = [row(1), row(2, content="d"), row(4, language="de"), row(5, source="web"), row(6, source="web")]
    found = compare_documents(write(tmp_path / "a", before), write(tmp_path / "b", after), tmp_path)
    assert (found.before, found.after) == (4, 5)
    assert dict(found.totals) == {"added": 2, "removed": 1, "changed": 2}
    assert found.by["source"] == {"web": {"added": 2, "removed": 1}, "books": {"changed": 2}}
    assert found.by["language"] == {"en": {"added": 2, "removed": 1, "changed": 1}, "de": {"changed": 1}}


def test_a_document_counts_once_however_many_copies_it_has(tmp_path: Path) -> None:
    before = [row(1), row(1, copy=1)]
    found = compare_documents(write(tmp_path / "a", before), write(tmp_path / "b", []), tmp_path)
    assert dict(found.totals) == {"removed": 1}


@pytest.mark.parametrize("bucket_rows", [7, 1000, 10**6])
@pytest.mark.parametrize("parts", [1, 3])
def test_the_differences_do_not_depend_on_how_the_rows_are_cut(
    tmp_path: Path, bucket_rows: int, parts: int
) -> None:
    draw = random.Random(1)
    before = {n: row(n, content=str(draw.randrange(3))) for n in draw.sample(range(900), 600)}
    after = {n: row(n, content=str(draw.randrange(3))) for n in draw.sample(range(900), 600)}
    told = io.StringIO()
    paths = [
        write(tmp_path / name, list(rows.values()), parts) for name, rows in (("a", before), ("b", after))
    ]
    found = compare_documents(paths[0], paths[1], tmp_path / "scratch", told, bucket_rows)
    expected = {rows[n]["id"]: "removed" for rows in (before,) for n in before.keys() - after.keys()}
    expected |= {after[n]["id"]: "added" for n in after.keys() - before.keys()}
    expected |= {before[n]["id"]: "changed" for n in before.keys() & after.keys() if before[n] != after[n]}
    lines = [json.loads(line) for line in told.getvalue().splitlines()]
    assert {line["id"]: line["change"] for line in lines} == expected
    assert [line["id"] for line in lines] == sorted(expected)
    assert sum(found.totals.values()) == len(expected)
    assert list((tmp_path / "scratch").iterdir()) == []


def test_two_equal_snapshots_do_not_differ(tmp_path: Path) -> None:
    rows = [row(n, language=None) for n in range(20)]
    found = compare_documents(write(tmp_path / "a", rows), write(tmp_path / "b", rows, 2), tmp_path)
    assert (found.totals, found.by["source"]) == ({}, {})
