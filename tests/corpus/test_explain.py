from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.explain import UnknownDocument, explain, render
from tasks.stage import StageError

KEEPER = "aa" + "0" * 30
COPY = "ab" + "0" * 30
SHORT = "b" * 32
BROKEN = "c" * 32

LEDGER = pa.schema(
    [
        ("id", pa.string()),
        ("stage", pa.string()),
        ("rule", pa.string()),
        ("value", pa.float64()),
        ("threshold", pa.float64()),
        ("verdict", pa.string()),
        ("detail", pa.string()),
    ]
)


def write(layer: Path, documents: list[str], ledger: list[dict]) -> None:
    for part, table in (
        ("documents", pa.table({"id": documents, "source": ["books"] * len(documents), "text": documents})),
        ("ledger", pa.Table.from_pylist(ledger, LEDGER)),
    ):
        (layer / part).mkdir(parents=True)
        pq.write_table(table, layer / part / "part-00000.parquet")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four records: one is broken, one too short, one a near-duplicate of the one that is kept."""
    broken = {
        "id": BROKEN,
        "stage": "collect",
        "rule": "text_not_string",
        "verdict": "quarantined",
        "detail": "byte 7",
    }
    short = {
        "id": SHORT,
        "stage": "clean",
        "rule": "words",
        "value": 3,
        "threshold": 20,
        "verdict": "removed",
    }
    copy = {"id": COPY, "stage": "dedup", "rule": "near_duplicate", "value": 0.91, "threshold": 0.8}
    write(tmp_path / "raw", [KEEPER, COPY, SHORT], [broken])
    write(tmp_path / "clean", [KEEPER, COPY], [short])
    write(tmp_path / "unique", [KEEPER], [{**copy, "verdict": "removed", "detail": KEEPER}])
    return tmp_path


def test_a_kept_document_is_in_every_layer_and_names_those_it_stands_for(data):
    story = explain(data, KEEPER)
    assert story.layers == ("raw", "clean", "unique")
    assert story.missing_layers == ("scored", "mixture", "snapshot")
    assert story.stands_for == [COPY]


def test_a_removed_document_ends_with_rule_value_and_threshold(data):
    text = render(explain(data, SHORT))
    assert "raw       yes" in text
    assert "clean     no\n            clean: removed by words, measured 3, threshold 20" in text


def test_a_duplicate_is_told_with_the_one_that_was_kept(data):
    story = explain(data, COPY)
    assert story.kept_instead is not None
    assert story.kept_instead.id == KEEPER
    assert f"near_duplicate, measured 0.91, threshold 0.8, {KEEPER}" in render(story)
    assert f"  document {KEEPER}" in render(story)


def test_a_document_that_an_earlier_month_kept_does_not_stand_for_itself(data):
    again = {"id": SHORT, "stage": "dedup", "rule": "exact_duplicate", "verdict": "removed", "detail": SHORT}
    pq.write_table(pa.Table.from_pylist([again], LEDGER), data / "unique/ledger/part-00001.parquet")
    story = explain(data, SHORT)
    assert story.stands_for == []
    assert render(story).endswith(f"\nthe one that was kept, {SHORT}, is of an earlier month")


@pytest.mark.parametrize("part", ["documents", "ledger"])
def test_a_damaged_file_is_named(data, part):
    path = data / "clean" / part / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(StageError, match=rf"{part}.* cannot be read, it is damaged .*part-00000\.parquet"):
        explain(data, KEEPER)


def test_a_record_that_never_became_a_document_is_found_in_the_ledger(data):
    assert "quarantined by text_not_string, byte 7" in render(explain(data, BROKEN))


def test_the_beginning_of_an_id_is_enough_unless_it_is_ambiguous(data):
    assert explain(data, "BB").id == SHORT
    with pytest.raises(UnknownDocument, match=f"2 documents' ids begin with a: {KEEPER}, {COPY}"):
        explain(data, "a")


@pytest.mark.parametrize("prefix", ["d", "", "xyz", "a" * 33, "' or 1"])
def test_what_is_no_id_is_refused(data, prefix):
    with pytest.raises(UnknownDocument):
        explain(data, prefix)
