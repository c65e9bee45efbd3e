from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.corpus.mix import MixParams, mix
from tasks.corpus.snapshot import SnapshotParams, snapshot, verify
from tasks.resources import Resources
from tasks.stage import StageError


@pytest.fixture
def mixture(layer: Callable[..., Path], tmp_path: Path, resources: Resources) -> Path:
    mix(layer(*[f"text {i}" for i in range(20)]), tmp_path / "mixture", MixParams(), resources)
    return tmp_path / "mixture"


def test_a_manifest_tells_what_is_in_a_snapshot(mixture: Path, tmp_path: Path, resources: Resources) -> None:
    report = snapshot(mixture, tmp_path / "snapshot", SnapshotParams(note="first"), resources)
    manifest = verify(tmp_path / "snapshot")
    assert manifest.snapshot == report.snapshot
    assert sum(file.rows for file in manifest.files) == report.documents == 20
    assert manifest.counts["source"] == {"docs": 20}
    assert [step["stage"] for step in manifest.lineage] == ["mix"]
    assert manifest.note == "first"


def test_the_name_depends_on_documents_and_parameters(
    mixture: Path, tmp_path: Path, resources: Resources
) -> None:
    names = [
        snapshot(mixture, tmp_path / f"s{i}", SnapshotParams(parent=parent), resources).snapshot
        for i, parent in enumerate([None, None, "abc"])
    ]
    assert names[0] == names[1] != names[2]


def test_a_flipped_bit_is_told_with_the_file(mixture: Path, tmp_path: Path, resources: Resources) -> None:
    snapshot(mixture, tmp_path / "snapshot", SnapshotParams(), resources)
    part = tmp_path / "snapshot" / "documents" / "part-00000.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(StageError, match="part-00000.parquet is not the file"):
        verify(tmp_path / "snapshot")
    part.unlink()
    with pytest.raises(StageError, match="part-00000.parquet is missing"):
        verify(tmp_path / "snapshot")


@pytest.mark.parametrize(
    ("key", "value"), [("note", "another"), ("parent", "abc"), ("snapshot", "0" * 64), ("files", [])]
)
def test_a_manifest_that_was_changed_is_told(
    mixture: Path, tmp_path: Path, resources: Resources, key: str, value: object
) -> None:
    snapshot(mixture, tmp_path / "snapshot", SnapshotParams(), resources)
    path = tmp_path / "snapshot" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {key: value}), "utf-8")
    with pytest.raises(StageError, match=r"manifest\.json was changed since it was written"):
        verify(tmp_path / "snapshot")


def test_a_manifest_written_otherwise_is_the_same(
    mixture: Path, tmp_path: Path, resources: Resources
) -> None:
    params = SnapshotParams(note="Grüße 人工智能", parent="abc")
    report = snapshot(mixture, tmp_path / "snapshot", params, resources)
    path = tmp_path / "snapshot" / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")), sort_keys=True), "utf-8")
    assert verify(tmp_path / "snapshot").snapshot == report.snapshot


@pytest.mark.parametrize("content", ["", "{", json.dumps({"snapshot": "x"})])
def test_a_broken_manifest_is_told(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content, "utf-8")
    with pytest.raises(StageError, match="manifest.json is broken"):
        verify(tmp_path)


def test_a_directory_without_a_manifest_is_no_snapshot(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="no manifest"):
        verify(tmp_path)
