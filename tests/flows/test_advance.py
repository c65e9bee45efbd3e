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


def locked(folder: Path, raw: str, read_by_score: str, clean: str, read_by_dedup: str) -> None:
    """A dvc.lock as DVC leaves it, with these hashes of the layers."""
    stages = {
        "collect": {"outs": [{"path": "data/raw", "md5": raw}]},
        "score": {
            "deps": [{"path": "data/raw", "md5": read_by_score}, {"path": "tasks/stage.py", "md5": "c0de"}],
            "outs": [{"path": "data/clean", "md5": clean}],
        },
        "dedup": {
            "deps": [{"path": "data/clean", "md5": read_by_dedup}, {"path": "earlier", "md5": "ea1.dir"}],
            "outs": [{"path": "data/unique", "md5": "f00.dir"}],
        },
    }
    (folder / "dvc.lock").write_text(json.dumps({"schema": "2.0", "stages": stages}))


@pytest.mark.parametrize(
    ("hashes", "told"),
    [
        (("new.dir", "old.dir", "c.dir", "c.dir"), "data/clean was made before data/raw became what it is"),
        (("r.dir", "r.dir", "new.dir", "old.dir"), "data/unique was made before data/clean became"),
    ],
    ids=["collected and no more", "cleaned and no more"],
)
def test_documents_that_were_collected_but_not_deduplicated_are_not_passed_over(
    project: Path, hashes: tuple[str, str, str, str], told: str
) -> None:
    locked(project, *hashes)
    with pytest.raises(BadInput, match=told):
        advance(project)
    assert (project / "watermarks.json").read_text() == "{}"
    assert [path.name for path in (project / "earlier").iterdir()] == ["README.md"]


def test_a_run_to_its_end_is_gone_on_from_and_stays_so_while_the_next_one_is_half_done(project: Path) -> None:
    locked(project, "r.dir", "r.dir", "c.dir", "c.dir")
    assert advance(project) != []
    locked(project, "new.dir", "r.dir", "c.dir", "c.dir")
    assert advance(project) == []


def test_watermarks_that_were_lost_are_written_anew(project: Path) -> None:
    (project / "watermarks.json").unlink()
    assert "watermarks.json" in advance(project)
    assert json.loads((project / "watermarks.json").read_text()) == {"month": 1}


def test_a_lock_that_is_none_is_named(project: Path) -> None:
    (project / "dvc.lock").write_text("<<<<<<< HEAD\n: [")
    with pytest.raises(BadInput, match=r"dvc\.lock is not valid YAML"):
        advance(project)


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
