from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.advance import advance
from flows.project import BadInput


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "data" / "raw").mkdir(parents=True)
    (folder / "data" / "unique" / "index" / "minhash").mkdir(parents=True)
    (folder / "earlier").mkdir()
    (folder / "earlier" / "README.md").write_text("what earlier months left\n")
    (folder / "watermarks.json").write_text("{}")
    (folder / ".gitignore").write_text("/data\n")
    made(folder, 1)
    for command in (["git", "init", "--quiet"], [sys.executable, "-m", "dvc", "init", "--quiet"]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


def made(folder: Path, month: int) -> None:
    """What a run of the corpus leaves."""
    (folder / "data" / "raw" / "watermarks.json").write_text(json.dumps({"month": month}))
    index = folder / "data" / "unique" / "index"
    (index / "minhash" / "0.keys.npy").unlink(missing_ok=True)
    (index / "minhash" / "0.keys.npy").write_bytes(bytes([month] * 9))
    (index / "index.json").write_text(json.dumps({"sha256": month}))


def test_the_next_run_finds_what_this_one_collected_and_kept(project: Path) -> None:
    assert advance(project) == ["watermarks.json", "earlier/index.dvc", "earlier/.gitignore"]
    assert json.loads((project / "watermarks.json").read_text()) == {"month": 1}
    assert (project / "earlier/index/minhash/0.keys.npy").read_bytes() == bytes([1] * 9)
    ignored = subprocess.run(["git", "check-ignore", "-q", "earlier/index"], cwd=project)
    assert ignored.returncode == 0


def test_dvc_brings_an_earlier_index_back(project: Path) -> None:
    advance(project)
    before = (project / "earlier/index.dvc").read_text()
    made(project, 2)
    advance(project)
    assert (project / "earlier/index/minhash/0.keys.npy").read_bytes() == bytes([2] * 9)
    (project / "earlier/index.dvc").write_text(before)
    command = [sys.executable, "-m", "dvc", "checkout", "--quiet", "earlier/index.dvc"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    assert (project / "earlier/index/minhash/0.keys.npy").read_bytes() == bytes([1] * 9)


def test_going_on_twice_changes_nothing_the_second_time(project: Path) -> None:
    advance(project)
    assert advance(project) == []


def missing_index(project: Path) -> None:
    (project / "data/unique/index/index.json").unlink()


def missing_corpus(project: Path) -> None:
    (project / "data/raw/watermarks.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(missing_index, "dedup.keep_index: true"), (missing_corpus, "`gristmill run corpus` makes it")],
    ids=["no-index", "no-corpus"],
)
def test_without_a_run_nothing_changes(project: Path, spoil: Callable[[Path], None], message: str) -> None:
    spoil(project)
    with pytest.raises(BadInput, match=message):
        advance(project)
    assert (project / "watermarks.json").read_text() == "{}"
    assert [path.name for path in (project / "earlier").iterdir()] == ["README.md"]
