"""gristmill push, pull, and snapshot prune."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def retention(monkeypatch: pytest.MonkeyPatch):
    def keep(**layers: int) -> None:
        for layer, number in layers.items():
            monkeypatch.setenv(f"GRISTMILL_STORAGE__RETENTION__{layer.upper()}", str(number))

    return keep


def objects(corpus) -> set[str]:
    folder = corpus.folder / ".dvc/cache/files/md5"
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_without_retention_nothing_goes(corpus, two, gristmill) -> None:
    before = objects(corpus)
    status, shown, _ = gristmill("snapshot", "prune", "--without-copy")
    assert status == 0
    assert "nothing is beyond storage.retention" in shown
    assert objects(corpus) == before


def test_what_has_no_copy_stays_and_is_told(corpus, two, gristmill, retention) -> None:
    retention(raw=1, clean=1, tokens=1)
    before = objects(corpus)
    status, shown, _ = gristmill("snapshot", "prune")
    assert status == 0
    assert f"{two[0][:12]}  raw " in shown
    assert f"stays: no remote has a copy (`gristmill push {two[0][:12]}`, or --without-copy)" in shown
    assert objects(corpus) == before


def test_a_dry_run_says_what_would_go_and_leaves_it(corpus, two, gristmill, retention) -> None:
    retention(raw=1, clean=1, tokens=1)
    before = objects(corpus)
    would = gristmill("snapshot", "prune", "--dry-run", "--without-copy")[1]
    assert "would be freed" in would
    assert objects(corpus) == before
    did = gristmill("snapshot", "prune", "--without-copy")[1]
    assert would.replace("would be freed", "freed") == did
    gone = before - objects(corpus)
    assert gone
    assert not any(name.endswith(".dir") for name in gone)


def test_a_pruned_snapshot_is_listed_and_comes_back_from_the_remote(
    corpus, two, gristmill, retention
) -> None:
    assert gristmill("push", two[0])[0] == 0
    retention(raw=1, clean=1, tokens=1)
    before = objects(corpus)
    assert gristmill("snapshot", "prune")[0] == 0
    assert before - objects(corpus)
    assert gristmill("snapshot", "verify")[0] == 0  # the working tree's is whole
    (line,) = (line for line in gristmill("snapshot", "list")[1].splitlines() if two[0][:12] in line)
    assert " 9 " in line
    assert line.count("R") == 3
    assert "C" not in line.split("R", 1)[0].split()[-1]
    status, _, complaint = gristmill("snapshot", "diff", *two)
    assert status == 2
    assert f"`gristmill pull {two[0][:12]}` brings them" in complaint
    assert gristmill("snapshot", "restore", two[0], "--params")[0] == 0
    assert corpus.name == two[0]
    assert gristmill("snapshot", "verify")[0] == 0
    ran = len(corpus.executions)
    corpus.dvc("repro", "encode")
    assert len(corpus.executions) == ran


@pytest.mark.slow
def test_objects_that_a_kept_snapshot_shares_stay(corpus, two, gristmill, retention) -> None:
    third = corpus.run(commit="third", upper__true="upper: false")  # the raw layer is that of the second
    fourth = corpus.run(commit="fourth", lines__6="lines: 8")
    retention(raw=2)
    assert gristmill("snapshot", "prune", "--without-copy")[0] == 0
    # The scored documents of this toy are the same files as the raw ones, and `clean` keeps them.
    assert "data/raw: cache\n" in gristmill("snapshot", "verify", two[0])[1]
    retention(clean=2)
    assert gristmill("snapshot", "prune", "--without-copy")[0] == 0
    for name in (third, fourth):
        shown = gristmill("snapshot", "verify", name)[1]
        assert "data/raw: " in shown
        assert " of " not in shown.split("data/raw: ")[1].splitlines()[0]
    assert "data/raw: not here" not in gristmill("snapshot", "verify", two[1])[1]  # shared with the third
    # The first one's documents and lineage went; its empty ledger is that of all.
    assert "data/raw: cache (1 of 4 files)" in gristmill("snapshot", "verify", two[0])[1]


def test_the_layers_of_a_run_in_its_own_folder_stay(corpus, two, gristmill, retention) -> None:
    corpus.git("worktree", "add", "--quiet", "work/runs/try", "HEAD~1")
    retention(raw=1, clean=1, tokens=1)
    before = objects(corpus)
    assert gristmill("snapshot", "prune", "--without-copy")[0] == 0
    assert objects(corpus) == before


def test_named_snapshots_go_from_the_remotes_too(corpus, two, gristmill, tmp_path: Path) -> None:
    assert gristmill("push", two[0])[0] == 0
    pushed = {path for path in (tmp_path / "remote").rglob("*") if path.is_file()}
    status, shown, _ = gristmill("snapshot", "prune", two[0], "--from-remotes")
    assert status == 0
    assert "from remote" in shown
    left = {path for path in (tmp_path / "remote").rglob("*") if path.is_file()}
    assert left < pushed
    status, _, complaint = gristmill("snapshot", "restore", two[0])
    assert status == 2
    assert "cannot be brought back" in complaint
    status, _, complaint = gristmill("snapshot", "prune", two[1])
    assert status == 2
    assert "is that of the working tree" in complaint


def test_a_clone_pulls_what_was_pushed_and_has_nothing_to_do(corpus, two, gristmill) -> None:
    assert gristmill("push")[0] == 0
    for path in ("data", "artifacts", "reports", ".dvc/cache"):
        shutil.rmtree(corpus.folder / path)
    shown = gristmill("snapshot", "list")[1]
    assert "dvc-" in shown
    assert "`gristmill pull` brings it from the remotes" in shown
    status, shown, _ = gristmill("pull")
    assert status == 0
    assert "1 manifests of snapshots came" in shown
    assert gristmill("snapshot", "restore", two[1])[0] == 0
    corpus.dvc("checkout")
    ran = len(corpus.executions)
    corpus.dvc("repro")
    assert len(corpus.executions) == ran


def test_warm_and_cold_are_two_places(corpus, two, gristmill, tmp_path: Path) -> None:
    assert gristmill("push", "--cold", two[0])[0] == 0
    assert not (tmp_path / "remote").exists()
    assert (tmp_path / "cold").is_dir()
    (line,) = (line for line in gristmill("snapshot", "list")[1].splitlines() if two[0][:12] in line)
    assert line.split()[-1] == "-C-K"
    shutil.rmtree(corpus.folder / ".dvc/cache")
    gristmill("pull", "--cold")
    assert gristmill("pull", two[0])[0] == 2
    assert gristmill("pull", "--cold", two[0])[0] == 0


def test_no_remote_is_told(corpus, two, gristmill, monkeypatch) -> None:
    monkeypatch.setenv("GRISTMILL_STORAGE__COLD", "null")
    status, _, complaint = gristmill("push", "--cold")
    assert status == 2
    assert "set `storage.cold` in resources.yaml to a folder, a URL" in complaint


def test_an_object_that_the_remote_lacks_is_named(corpus, two, gristmill, tmp_path: Path) -> None:
    assert gristmill("push", two[0])[0] == 0
    shutil.rmtree(corpus.folder / "data")
    shutil.rmtree(corpus.folder / ".dvc/cache")
    assert gristmill("push", two[0])[0] == 2  # its name is not known here
    gristmill("pull")
    largest = max(
        (p for p in (tmp_path / "remote").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size
    )
    largest.unlink()
    status, _, complaint = gristmill("pull", two[0])
    assert status == 2
    assert "neither in DVC's cache nor in storage.remote" in complaint


def test_an_object_that_is_damaged_is_neither_pushed_nor_pulled(
    corpus, two, gristmill, tmp_path: Path
) -> None:
    cache = corpus.folder / ".dvc/cache/files/md5"
    files = [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".dir"]
    assert gristmill("push")[0] == 0
    pushed = {path.name for path in (tmp_path / "remote").rglob("*")}
    damaged = max((p for p in files if p.name not in pushed), key=lambda path: path.stat().st_size)
    damaged.chmod(0o644)
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    status, _, complaint = gristmill("push", two[0])
    assert status == 2
    assert f"{damaged} in DVC's cache is damaged" in complaint
    there = max((p for p in (tmp_path / "remote").rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    there.chmod(0o644)
    there.write_bytes(b"y" * there.stat().st_size)
    (cache / there.parent.name / there.name).unlink()
    status, _, complaint = gristmill("pull")
    assert status == 2
    assert f"object {there.parent.name}{there.name} in storage.remote" in complaint
    assert "is damaged: its MD5 is not its name" in complaint
