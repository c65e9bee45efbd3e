"""`gristmill review`: documents drawn, verdicts taken."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows import cli
from tasks.records import DOCUMENT_COLUMNS

TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
DOCUMENTS = pa.schema([(name, TYPES[kind]) for name, kind in DOCUMENT_COLUMNS.items()])
LEDGER = pa.schema(
    [(name, pa.float64() if name in ("value", "threshold") else pa.string())
     for name in ("id", "stage", "rule", "value", "threshold", "verdict", "detail")]
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose clean layer kept one document and removed one."""
    project = tmp_path / "project"
    for layer, ids in (("scored", ["a" * 32, "b" * 32]), ("clean", ["a" * 32])):
        (project / "data" / layer / "documents").mkdir(parents=True)
        (project / "data" / layer / "ledger").mkdir()
        rows = [{"id": id, "text": f"text of {id[0]}", "source": "docs", "origin": "d:0"} for id in ids]
        rows = [dict.fromkeys(DOCUMENT_COLUMNS) | {"signals": {}, "meta": {}} | row for row in rows]
        pq.write_table(
            pa.Table.from_pylist(rows, DOCUMENTS), project / "data" / layer / "documents" / "p.parquet"
        )
        entry = {"id": "b" * 32, "stage": "clean", "rule": "short", "value": 3.0, "threshold": 50.0,
                 "verdict": "removed", "detail": "words is below the minimum"}  # fmt: skip
        entries = [entry] if layer == "clean" else []
        pq.write_table(
            pa.Table.from_pylist(entries, LEDGER), project / "data" / layer / "ledger" / "p.parquet"
        )
        lineage = [{"stage": stage, "parameters": {}} for stage in ("collect", "score", "clean")]
        (project / "data" / layer / "lineage.json").write_text(json.dumps(lineage))
    (project / "dvc.yaml").write_text("stages: {}\n")
    (project / "params.yaml").write_text("{}\n")
    (project / "resources.yaml").write_text("{}\n")
    monkeypatch.chdir(project)
    return project


def main(*arguments: str) -> int:
    with contextlib.chdir(Path.cwd()):
        return cli.main(["review", *arguments])


def test_documents_are_drawn_and_the_verdicts_on_them_are_taken(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main() == 0
    assert "2 documents to judge" in capsys.readouterr().out
    lines = (folder / "work" / "review" / "review.jsonl").read_text().splitlines()
    assert {json.loads(line)["id"] for line in lines} == {"a" * 32, "b" * 32}
    verdict = {"id": "b" * 32, "rule": "clean/short", "verdict": "wrong", "time": "2026-01-01T00:00:00Z"}
    (folder / "verdicts.jsonl").write_text(json.dumps(verdict) + "\n")
    assert main("verdicts.jsonl") == 0
    assert "1 verdicts of 1 reviewers" in capsys.readouterr().out
    assert (folder / "reviews" / "verdicts.jsonl").exists()


def test_a_number_that_cannot_be_is_named_with_its_option(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("--text-characters", "5") == 2
    assert "--text-characters: Input should be greater than or equal to 200" in capsys.readouterr().err


def test_a_broken_line_of_verdicts_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    (folder / "verdicts.jsonl").write_text('{"id": 5}\n')
    assert main("verdicts.jsonl") == 2
    assert "verdicts.jsonl" in capsys.readouterr().err
