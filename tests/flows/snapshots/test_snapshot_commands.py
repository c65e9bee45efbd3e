"""gristmill snapshot list, diff, verify, restore."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_list_has_snapshots_of_all_branches_and_of_the_working_tree(corpus, two, gristmill) -> None:
    corpus.git("switch", "--quiet", "-c", "runs/try")
    third = corpus.run(commit="third", lines__6="lines: 7")
    corpus.git("switch", "--quiet", "main")
    corpus.dvc("checkout")
    fourth = corpus.run(lines__6="lines: 8")
    status, shown, _ = gristmill("snapshot", "list")
    assert status == 0
    lines = {line.split()[0]: line for line in shown.splitlines() if line}
    assert {name[:12] for name in (*two, third, fourth)} <= lines.keys()
    assert "runs/try" in lines[third[:12]]
    assert "working tree" in lines[fourth[:12]]
    assert "WC--" in lines[fourth[:12]]
    assert "-C--" in lines[two[0][:12]]


def test_a_project_without_snapshots_says_how_to_make_one(corpus, gristmill) -> None:
    assert gristmill("snapshot", "list")[1].startswith("no snapshot is known: `gristmill run corpus`")
    status, _, complaint = gristmill("snapshot", "verify")
    assert status == 2
    assert "records no snapshot" in complaint


def test_names_may_be_short_and_unknown_ones_list_what_is_known(corpus, two, gristmill) -> None:
    assert gristmill("snapshot", "verify", two[0][:6])[0] == 0
    status, _, complaint = gristmill("snapshot", "verify", "xyz")
    assert status == 2
    assert all(name in complaint for name in two)
    status, _, complaint = gristmill("snapshot", "verify", "")
    assert status in (0, 2)


def test_diff_counts_documents_and_names_parameters_and_code(corpus, two, gristmill) -> None:
    corpus.run(commit="third", upper__true="upper: false")
    code = corpus.folder / "toy" / "layers.py"
    code.write_text(code.read_text() + "# changed\n")
    third = corpus.run(commit="fourth", lines__6="lines: 7")
    ids = corpus.folder / "ids.jsonl"
    status, shown, _ = gristmill("snapshot", "diff", two[0], third, "--ids", str(ids))
    assert status == 0
    assert "documents 9 → 7: 0 added, 2 removed, 0 changed" in shown
    assert "collect.lines: 10 → 7" in shown
    assert "toy/layers.py: " in shown
    lines = [json.loads(line) for line in ids.read_text().splitlines()]
    assert {line["id"] for line in lines} == {corpus.document(7), corpus.document(8)}
    status, shown, _ = gristmill("snapshot", "diff", two[1], third)
    assert "1 added, 0 removed, 6 changed" in shown
    assert list((corpus.folder / "work" / "diff").iterdir()) == []


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(content)


def test_a_flipped_byte_in_the_working_tree_is_named(corpus, two, gristmill) -> None:
    assert gristmill("snapshot", "verify")[0] == 0
    flip(corpus.folder / "data/snapshot/documents/part-00001.parquet")
    flip(corpus.folder / "data/tokens/train-00000.bin")
    status, shown, _ = gristmill("snapshot", "verify")
    assert status == 1
    assert "data/snapshot/documents/part-00001.parquet in the working tree is not what the manifest" in shown
    assert "data/tokens/train-00000.bin in the working tree is not what dvc.lock records" in shown
    assert "part-00000.parquet in the working tree" not in shown


def test_files_too_many_and_too_few_are_named(corpus, two, gristmill) -> None:
    (corpus.folder / "data/raw/documents/more").touch()
    (corpus.folder / "data/clean/lineage.json").unlink()
    status, shown, _ = gristmill("snapshot", "verify", two[1])
    assert status == 1
    assert "data/raw/documents/more is in the working tree, but not recorded" in shown
    assert "data/clean/lineage.json is missing in the working tree" in shown


def test_a_flipped_byte_in_the_cache_of_an_older_snapshot_is_named(corpus, two, gristmill) -> None:
    listed = json.loads(cached(corpus, "data/raw", two[0]).read_bytes())
    entry = next(item for item in listed if item["relpath"] == "documents/part-00000.parquet")
    flip(object_path(corpus, entry["md5"]))
    status, shown, _ = gristmill("snapshot", "verify", two[0])
    assert status == 1
    assert "data/raw/documents/part-00000.parquet in DVC's cache is damaged" in shown
    assert gristmill("snapshot", "verify", two[1])[0] == 0


def object_path(corpus, md5: str) -> Path:
    return corpus.folder / ".dvc/cache/files/md5" / md5[:2] / md5[2:]


def cached(corpus, path: str, name: str) -> Path:
    """The list of an output's files in the cache, by the commit whose manifest has the name."""
    import yaml

    for commit in corpus.git("log", "--all", "--format=%H", "--", "dvc.lock").split():
        lock = yaml.safe_load(corpus.git("show", f"{commit}:dvc.lock"))["stages"]
        outs = {out["path"]: out["md5"] for stage in lock.values() for out in stage["outs"]}
        listed = json.loads(object_path(corpus, outs["data/snapshot"]).read_bytes())
        manifest = next(item["md5"] for item in listed if item["relpath"] == "manifest.json")
        if json.loads(object_path(corpus, manifest).read_bytes())["snapshot"] == name:
            return object_path(corpus, outs[path])
    raise AssertionError(f"no commit has {name}")


def test_a_restored_snapshot_with_its_parameters_has_nothing_to_do(corpus, two, gristmill) -> None:
    before = len(corpus.executions)
    status, shown, _ = gristmill("snapshot", "restore", two[0], "--params")
    assert status == 0
    assert corpus.name == two[0]
    assert "stages that the next run would do: pretrain" in shown
    assert "lines: 10" in (corpus.folder / "params.yaml").read_text()
    assert "# what decides" in (corpus.folder / "params.yaml").read_text()
    corpus.dvc("repro")
    assert set(corpus.executions[before:]) <= {"pretrain", "release"}
    assert corpus.name == two[0]
    assert gristmill("snapshot", "verify")[0] == 0
    assert not list(corpus.folder.glob("**/.*.restored")) + list(corpus.folder.glob("**/.*.retired"))


def test_without_parameters_it_tells_which_differ_and_how_to_set_them(corpus, two, gristmill) -> None:
    params = (corpus.folder / "params.yaml").read_bytes()
    status, shown, _ = gristmill("snapshot", "restore", two[0][:8])
    assert status == 0
    assert "collect.lines: 10 → 6" in shown
    assert f"`gristmill snapshot restore {two[0][:12]} --params` sets them" in shown
    assert (corpus.folder / "params.yaml").read_bytes() == params
    assert corpus.name == two[0]


def test_code_that_differs_is_named(corpus, two, gristmill) -> None:
    code = corpus.folder / "toy" / "layers.py"
    code.write_text(code.read_text() + "# changed\n")
    shown = gristmill("snapshot", "restore", two[0], "--params")[1]
    assert "code and inputs that differ: toy/layers.py" in shown
    assert "stages that the next run would do: collect" in shown


def test_an_output_that_is_in_no_cache_is_not_lost(corpus, two, gristmill) -> None:
    path = corpus.folder / "data/clean/lineage.json"
    path.write_text("[]")
    before = corpus.state()
    status, _, complaint = gristmill("snapshot", "restore", two[0])
    assert status == 2
    assert "data/clean would be lost" in complaint
    assert "`dvc commit -f refine` saves it" in complaint
    assert corpus.state() == before


def test_a_snapshot_that_no_commit_records_is_not_lost(corpus, two, gristmill) -> None:
    third = corpus.run(lines__6="lines: 7")
    before = corpus.state()
    status, _, complaint = gristmill("snapshot", "restore", two[0])
    assert status == 2
    assert "no commit records: `git add dvc.lock params.yaml && git commit`" in complaint
    assert corpus.state() == before
    corpus.git("commit", "--quiet", "--all", "-m", "third")
    assert gristmill("snapshot", "restore", two[0])[0] == 0
    assert gristmill("snapshot", "restore", third)[0] == 0


def test_changed_parameters_that_no_commit_has_are_not_overwritten(corpus, two, gristmill) -> None:
    params = corpus.folder / "params.yaml"
    params.write_text(params.read_text() + "# a thought\n")
    before = corpus.state()
    status, _, complaint = gristmill("snapshot", "restore", two[0], "--params")
    assert status == 2
    assert "has changes that --params would overwrite" in complaint
    assert {k: v for k, v in corpus.state().items() if ".restored" not in k} == before


KILLED = """
import os, sys
from pathlib import Path
left = int(sys.argv[1])
rename, replace = Path.rename, Path.replace

def counted(original):
    def call(self, target):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
        return original(self, target)
    return call

Path.rename, Path.replace = counted(rename), counted(replace)
from flows.cli import main
sys.exit(main(["snapshot", "restore", sys.argv[2], "--params"]))
"""


@pytest.mark.parametrize("renames", [0, 1, 2, 3, 8, 15])
def test_a_restore_that_is_killed_leaves_the_old_state_or_the_new_one(
    corpus, two, gristmill, renames: int
) -> None:
    old = corpus.state()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(renames), two[0]], cwd=corpus.folder)
    assert killed.returncode == -9
    gristmill("snapshot", "list")  # any command does what is left to be done
    state = {path: content for path, content in corpus.state().items() if ".restored" not in path}
    if renames == 0:
        assert state == old
    assert corpus.name == two[0 if renames else 1]
    assert gristmill("snapshot", "verify")[0] == 0
    # DVC tells of the killed process through the stream that it found when it was loaded.
    again = [sys.executable, "-m", "flows.cli", "snapshot", "restore", two[0], "--params"]
    assert subprocess.run(again, cwd=corpus.folder).returncode == 0
    assert corpus.name == two[0]
    assert not list((corpus.folder / "data").rglob(".*"))
