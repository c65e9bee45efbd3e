from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tasks.corpus.policies.verdict_changes import (
    EXAMPLES,
    compare_verdicts,
    keep_for_comparison,
    same_policy,
)
from tasks.resources import Resources
from tasks.spark import spark_session

LEDGER = pa.schema([("id", pa.string()), ("rule", pa.string()), ("verdict", pa.string())])

WriteLayer = Callable[..., Path]


@pytest.fixture
def spark(resources: Resources) -> Iterator[SparkSession]:
    with spark_session("verdicts", resources) as session:
        yield session


@pytest.fixture
def clean_layer(tmp_path: Path) -> WriteLayer:
    """Write a clean layer: for each document the rules that removed it, none where it was kept."""

    def write(name: str, rules: dict[str, list[str]], masked: tuple[str, ...] = (), **policy: float) -> Path:
        layer = tmp_path / name
        removed = [{"id": id, "rule": rule, "verdict": "removed"} for id in rules for rule in rules[id]]
        removed += [{"id": id, "rule": "pii_email", "verdict": "kept"} for id in masked]
        kept = pa.table({"id": pa.array([id for id in rules if not rules[id]], pa.string())})
        for part, table in (("documents", kept), ("ledger", pa.Table.from_pylist(removed, LEDGER))):
            (layer / part).mkdir(parents=True)
            pq.write_table(table, layer / part / "part-00000.parquet")
        (layer / "lineage.json").write_text(json.dumps([{"stage": "clean", "parameters": policy}]))
        return layer

    return write


def test_documents_that_another_policy_judges_otherwise_are_told_by_rule(spark, clean_layer) -> None:
    before = clean_layer("before", {"a": [], "b": [], "c": ["words"], "d": ["words"], "e": ["lines"]})
    after = clean_layer("after", {"a": [], "b": ["toxic"], "c": [], "d": ["words"], "e": ["toxic"]})
    found = compare_verdicts(spark, before, after)
    assert (found.documents, found.changed) == (5, 3)
    told = {(change.before, change.after): (change.documents, change.examples) for change in found.changes}
    assert told == {
        ("kept", "toxic"): (1, ["b"]),
        ("words", "kept"): (1, ["c"]),
        ("lines", "toxic"): (1, ["e"]),
    }


def test_nothing_is_told_of_layers_that_judge_alike(spark, clean_layer) -> None:
    rules = {"a": [], "b": ["words"]}
    found = compare_verdicts(spark, clean_layer("before", rules), clean_layer("after", rules))
    assert (found.documents, found.changed, found.changes) == (2, 0, [])
    assert str(found) == "0 of 2 documents changed verdict"


def test_new_and_vanished_documents_are_absent_on_one_side(spark, clean_layer) -> None:
    before = clean_layer("before", {"old": [], "gone": ["words"], "stays": []})
    after = clean_layer("after", {"new": [], "bad": ["toxic"], "stays": []})
    found = compare_verdicts(spark, before, after)
    assert {(change.before, change.after) for change in found.changes} == {
        ("kept", "absent"),
        ("words", "absent"),
        ("absent", "kept"),
        ("absent", "toxic"),
    }
    assert (found.documents, found.changed) == (5, 4)


def test_a_document_counts_once_by_the_first_of_its_rules(spark, clean_layer) -> None:
    before = clean_layer("before", {"a": ["words", "lines", "toxic"], "b": ["toxic", "words"]})
    after = clean_layer("after", {"a": ["words", "toxic"], "b": ["words", "toxic"]})
    (change,) = compare_verdicts(spark, before, after).changes
    assert (change.before, change.after, change.documents) == ("lines", "toxic", 1)


def test_what_was_masked_in_a_kept_document_is_no_verdict(spark, clean_layer) -> None:
    before = clean_layer("before", {"a": []}, masked=("a",))
    assert compare_verdicts(spark, before, clean_layer("after", {"a": []})).changed == 0


def test_layers_that_keep_or_remove_nothing_can_be_compared(spark, clean_layer) -> None:
    all_kept, all_removed = clean_layer("before", {"a": []}), clean_layer("after", {"a": ["words"]})
    (change,) = compare_verdicts(spark, all_kept, all_removed).changes
    assert (change.before, change.after) == ("kept", "words")


def test_the_largest_change_comes_first_with_its_first_ids(spark, clean_layer) -> None:
    ids = [f"{number:032x}" for number in range(12)]
    before = clean_layer("before", {name: [] for name in [*ids, "x"]})
    after = clean_layer("after", {name: ["words"] for name in ids} | {"x": ["lines"]})
    found = compare_verdicts(spark, before, after)
    assert [(change.after, change.documents) for change in found.changes] == [("words", 12), ("lines", 1)]
    assert found.changes[0].examples == ids[:EXAMPLES]
    heading, _, first, _ = str(found).splitlines()
    assert heading == "13 of 13 documents changed verdict"
    assert first.split() == ["kept", "words", "12", *(name[:12] for name in ids[:EXAMPLES])]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_kept_outlives_the_layer_that_it_was_linked_from(clean_layer, tmp_path, spark) -> None:
    layer = clean_layer("clean", {"a": [], "b": ["words"]}, minimum=1)
    kept = tmp_path / "work" / "before"
    keep_for_comparison(layer, kept)
    as_it_was = contents(layer)
    assert contents(kept) == as_it_was
    part = "documents/part-00000.parquet"
    assert (kept / part).samefile(layer / part), "takes no space while the layer is there"

    shutil.rmtree(layer)  # as a stage replaces its output
    clean_layer("clean", {"a": ["toxic"], "b": ["words"]}, minimum=2)
    assert contents(kept) == as_it_was
    assert not same_policy(kept, layer)
    (change,) = compare_verdicts(spark, kept, layer).changes
    assert (change.before, change.after, change.examples) == ("kept", "toxic", ["a"])


def test_keeping_replaces_what_an_earlier_or_a_killed_run_left(clean_layer, tmp_path) -> None:
    kept = tmp_path / "work" / "before"
    keep_for_comparison(clean_layer("first", {"a": [], "b": []}, minimum=1), kept)
    (kept / "documents" / "part-00001.parquet").write_bytes(b"of a larger layer")
    (kept.parent / ".before.partial" / "documents").mkdir(parents=True)
    (kept.parent / ".before.partial" / "documents" / "part-00007.parquet").write_bytes(b"of a killed run")
    second = clean_layer("second", {"c": ["words"]}, minimum=2)
    keep_for_comparison(second, kept)
    assert contents(kept) == contents(second)
    assert sorted(path.name for path in kept.parent.iterdir()) == ["before"]


@pytest.mark.parametrize("step", ["rmtree", "copy", "rename"])
@pytest.mark.parametrize("time", [1, 2, 3])
def test_a_run_killed_while_it_keeps_leaves_a_whole_layer_or_none(
    clean_layer, tmp_path, monkeypatch, step, time
) -> None:
    kept = tmp_path / "work" / "before"
    first = clean_layer("first", {"a": []}, minimum=1)
    second = clean_layer("second", {"b": ["words"]}, minimum=2)
    keep_for_comparison(first, kept)
    place = Path if step == "rename" else shutil
    real, calls = getattr(place, step), []

    def killed(*arguments, **options):
        calls.append(arguments)
        if len(calls) == time:
            if step == "rmtree":  # half of it is gone
                shutil.rmtree = real
                real(Path(arguments[0]) / "documents", ignore_errors=True)
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(place, step, killed)
    with contextlib.suppress(KeyboardInterrupt):
        keep_for_comparison(second, kept)
    monkeypatch.setattr(place, step, real)
    assert not kept.exists() or contents(kept) in (contents(first), contents(second))
    keep_for_comparison(second, kept)
    assert contents(kept) == contents(second)


def test_where_files_cannot_be_linked_they_are_copied(clean_layer, tmp_path, monkeypatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError("another file system")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    layer = clean_layer("clean", {"a": [], "b": ["words"]})
    keep_for_comparison(layer, tmp_path / "before")
    assert contents(tmp_path / "before") == contents(layer)


def test_only_parameters_make_another_policy(clean_layer) -> None:
    one = clean_layer("one", {"a": []}, minimum=1)
    assert same_policy(one, clean_layer("other", {"b": ["words"]}, minimum=1))
    assert not same_policy(one, clean_layer("stricter", {"a": []}, minimum=2))
