from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tasks.layer_filter import write_filtered
from tasks.records import read_lineage
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import DocumentReport, StageParams

LEDGER = "id string, rule string, value double, threshold double, detail string"


def in_row_groups(layer: Path, rows: int) -> None:
    for path in (layer / "documents").glob("*.parquet"):
        table = pq.read_table(path).sort_by("id")
        pq.write_table(table, path, row_group_size=rows)


def filtered(clean: Path, unique: Path, removed: list[str], resources: Resources) -> dict[str, Any]:
    with spark_session("tests", resources) as spark:
        ledger = spark.createDataFrame([(name, "twin", 1.0, 0.5, "why") for name in removed], LEDGER)
        return write_filtered(spark, clean, ledger, unique, "sift", StageParams())


@pytest.mark.parametrize("going", ["none", "some", "all"])
def test_what_the_ledger_names_goes_and_the_rest_stays_where_it_was(
    layer: Callable[..., Path], documents_of, ledger_of, tmp_path: Path, resources: Resources, going: str
) -> None:
    texts = [{"text": f"text {i}", "language": "en" if i % 3 else None} for i in range(40)]
    clean, unique = layer(*texts, parts=3), tmp_path / "unique"
    in_row_groups(clean, 4)
    before = documents_of(clean)
    removed = [row["id"] for row in before][:: {"none": 999, "some": 5, "all": 1}[going]]
    removed = [] if going == "none" else removed
    counts = filtered(clean, unique, removed, resources)
    stays = [row for row in before if row["id"] not in removed]
    assert documents_of(unique) == stays
    assert sorted(row["id"] for row in ledger_of(unique)) == sorted(removed)
    assert {path.name for path in (unique / "documents").iterdir()} == {
        path.name for path in (clean / "documents").iterdir()
    }
    report = DocumentReport(**counts)
    assert (report.records_in, report.kept, report.removed) == (40, len(stays), len(removed))
    assert report.removed_by_rule == ({"twin": len(removed)} if removed else {})
    assert sum(report.kept_by_language.values()) == sum(report.kept_by_source.values()) == len(stays)
    assert read_lineage(unique)[-1]["stage"] == "sift"


def test_a_ledger_of_documents_that_are_not_there_does_not_add_up(
    layer: Callable[..., Path], tmp_path: Path, resources: Resources
) -> None:
    counts = filtered(layer("one", "two"), tmp_path / "unique", ["f" * 32], resources)
    with pytest.raises(ValueError, match="unaccounted"):
        DocumentReport(**counts)
