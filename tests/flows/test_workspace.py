from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flows.project import BadInput
from flows.run_parameters import RunParameters
from flows.servers import free_port
from flows.stage import StageFailed
from flows.workspace import with_changes, workspace

PLAN = ("first", "second")


def run(*assignments: str, name: str | None = None):
    def steps():
        with workspace(RunParameters(set=list(assignments), name=name), *PLAN) as here:
            return list(here.run_stages(*PLAN)) if here.has_work else []

    return steps


def results(outcomes) -> list[str]:
    return [outcome.result for outcome in outcomes]


def reproduce(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-m", "dvc", "repro"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_without_changes_happens_in_place_and_only_what_changed_runs(pair, in_flow):
    assert results(in_flow(run())) == ["ran", "ran"]
    (pair.folder / "params.yaml").write_text("first: {amount: 1}\nsecond: {amount: 5}\n")
    assert results(in_flow(run())) == ["unchanged", "ran"]
    assert pair.executions == ["first", "second", "second"]
    assert in_flow(run()) == []


def test_a_run_with_changed_parameters_is_recorded_on_its_branch_and_leaves_the_folder_alone(pair, in_flow):
    in_flow(run())
    kept_apart = {".git", ".dvc", "work"}
    files = [path for path in pair.folder.rglob("*") if path.is_file() and not kept_apart & {*path.parts}]
    before = {path: path.read_bytes() for path in files}
    assert results(in_flow(run("second.amount=7", name="seven"))) == ["unchanged", "ran"]

    assert {path: path.read_bytes() for path in files} == before
    assert pair.git("log", "--format=%s", "main..runs/seven") == "Run seven"
    assert pair.git("show", "--name-only", "--format=", "runs/seven").split() == ["dvc.lock", "params.yaml"]
    assert "amount: 7 # how much" in pair.git("show", "runs/seven:params.yaml")
    made = pair.folder / "work" / "runs" / "seven" / "made" / "second"
    assert made.read_text() == "source\nfirst 1\nsecond 7\n"

    clone = pair.folder.parent / "again"
    pair.git("worktree", "add", "--quiet", "--detach", str(clone), "runs/seven")
    (clone / ".dvc" / "config.local").write_text(f"[cache]\n    dir = {pair.folder}/.dvc/cache\n")
    subprocess.run([sys.executable, "-m", "dvc", "checkout", "--quiet"], cwd=clone, check=True)
    reproduce(clone)
    assert not (clone / "executions.log").exists()
    assert (clone / "made" / "second").read_text() == made.read_text()


def test_a_stage_finds_in_a_run_of_its_own_what_it_kept_of_its_last_run(pair, in_flow):
    kept = pair.folder / "work" / "kept" / "second"
    kept.mkdir(parents=True)
    (kept / "verdicts").write_text("of the last run")
    in_flow(run("second.amount=7", name="seven"))
    there = pair.folder / "work/runs/seven/work/kept/second/verdicts"
    assert there.read_text() == "of the last run"
    there.unlink()
    assert (kept / "verdicts").read_text() == "of the last run"


def test_uncommitted_changes_take_part_and_untracked_files_are_named(pair, in_flow, caplog):
    (pair.folder / "source.txt").write_text("changed\n")
    (pair.folder / "stray.txt").touch()
    in_flow(run("second.amount=2", name="dirty"))
    assert (pair.folder / "work/runs/dirty/made/second").read_text() == "changed\nfirst 1\nsecond 2\n"
    assert pair.git("show", "runs/dirty:source.txt") == "changed"
    assert pair.git("status", "--porcelain") == "M source.txt\n?? stray.txt"
    assert any("stray.txt" in record.getMessage() for record in caplog.records)


def test_files_with_new_dates_alone_are_no_changes(pair, in_flow):
    for path in pair.git("ls-files").split():
        os.utime(pair.folder / path, (0, 0))
    in_flow(run("second.amount=2", name="dated"))
    assert pair.git("log", "--format=%s", "main..runs/dated") == "Run dated"


def test_a_failed_run_records_nothing_and_the_same_run_goes_on_in_its_folder(project, in_flow, monkeypatch):
    project.stage("first", ["source.txt"])
    body = "import os\nif not os.environ.get('MENDED'): raise StageError('broken')"
    project.stage("second", ["first"], body=body)
    project.commit()
    with pytest.raises(StageFailed, match="broken"):
        in_flow(run("first.amount=3", name="three"))
    assert project.git("log", "--format=%s", "main..runs/three") == ""
    assert (project.folder / "work/runs/three/made/first").exists()
    monkeypatch.setenv("MENDED", "yes")
    assert results(in_flow(run("first.amount=3", name="three"))) == ["unchanged", "ran"]
    assert project.git("log", "--format=%s", "main..runs/three") == "Run three"


def test_a_name_that_is_taken_is_refused(pair, in_flow):
    pair.git("branch", "runs/seven")
    with pytest.raises(BadInput, match="a run named seven exists already"):
        in_flow(run("second.amount=7", name="seven"))


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("second.amuont=7", "`amuont` is not a known key; did you mean `amount`"),
        ("secnod.amount=7", "`secnod` is not a section of any stage; did you mean `second`"),
        ("second.amount=many", r"params.yaml with second.amount=many: second is not valid(?s:.)*`amount`"),
        ("second.amount", "write it as section.key=value"),
    ],
)
def test_a_mistaken_change_is_refused_before_anything_starts(pair, in_flow, assignment, complaint):
    with pytest.raises(BadInput, match=complaint):
        in_flow(run(assignment, name="wrong"))
    assert pair.git("branch", "--list", "runs/*") == ""
    assert not (pair.folder / "work" / "runs").exists()
    assert pair.executions == []


def test_a_source_that_does_not_exist_is_refused_with_its_path(pair, in_flow):
    (pair.folder / "source.txt").unlink()
    with pytest.raises(BadInput, match=f"first reads {pair.folder / 'source.txt'}, which does not exist"):
        in_flow(run())
    with pytest.raises(BadInput, match="which does not exist"):
        in_flow(run("second.amount=2", name="two"))
    assert pair.git("branch", "--list", "runs/*") == ""


def test_a_part_of_the_graph_asks_for_what_stands_before_it(pair, in_flow):
    def only_second():
        with workspace(RunParameters(), "second") as here:
            return list(here.run_stages("second"))

    with pytest.raises(BadInput, match="made/first, which stage first makes and has not made yet"):
        in_flow(only_second)


def test_changed_parameters_need_git_with_a_commit(pair, in_flow):
    (pair.folder / ".git").rename(pair.folder / "gone")
    subprocess.run([sys.executable, "-m", "dvc", "config", "core.no_scm", "true"], check=True)
    with pytest.raises(BadInput, match="is not in a git repository"):
        in_flow(run("second.amount=2"))
    assert results(in_flow(run())) == ["ran", "ran"]
    subprocess.run(["git", "init", "--quiet"], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "config", "core.no_scm", "false"], check=True)
    with pytest.raises(BadInput, match="has no commit yet"):
        in_flow(run("second.amount=2"))


def test_a_detached_head_and_no_identity_are_no_obstacle(pair, in_flow, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    pair.git("config", "user.useConfigOnly", "true")
    pair.git("checkout", "--quiet", "--detach")
    (pair.folder / "source.txt").write_text("changed\n")
    in_flow(run("first.amount=2", name="two"))
    assert pair.git("log", "-1", "--format=%s by %an", "runs/two") == "Run two by Gristmill"


def test_a_project_below_the_top_of_its_repository(project, in_flow):
    project.stage("first", ["source.txt"])
    project.stage("second", ["first"])
    top = project.folder.parent
    subprocess.run(["git", "init", "--quiet", str(top)], check=True)
    subprocess.run([sys.executable, "-m", "dvc", "init", "--quiet", "--subdir"], check=True)
    project.git("add", "--all")
    project.git("-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "toy")
    in_flow(run("second.amount=2", name="two"))
    made = project.folder / "work/runs/two/project/made/second"
    assert made.read_text() == "source\nfirst 1\nsecond 2\n"


def test_comments_and_numbers_survive_a_change(tmp_path):
    params = tmp_path / "params.yaml"
    params.write_text("a: # the first\n  rate: 5e-5 # learning rate\n  names: [x, 'y']\nb:\n  on: yes\n")
    assert with_changes(params, ["a.names=[z]", "b.depth=3"]) == (
        "a: # the first\n  rate: 5e-5 # learning rate\n  names:\n    - z\nb:\n  on: yes\n  depth: 3\n"
    )


def test_mlflow_has_one_run_with_the_stages_inside(pair, in_flow):
    from mlflow.tracking import MlflowClient

    in_flow(run("second.amount=2", name="two"))
    client = MlflowClient(f"sqlite:///{pair.folder}/work/mlflow.db")
    experiment = client.get_experiment_by_name("gristmill")
    assert experiment is not None
    runs = {found.info.run_name: found for found in client.search_runs([experiment.experiment_id])}
    parent = runs.pop("two")
    assert {name: found.data.tags["mlflow.parentRunId"] for name, found in runs.items()} == {
        "first": parent.info.run_id,
        "second": parent.info.run_id,
    }
    assert parent.info.status == "FINISHED"
    assert parent.data.tags["changed_parameters"] == "second.amount=2"
    assert parent.data.tags["git.commit"] == pair.git("rev-parse", "runs/two")
    assert runs["second"].data.params == {"amount": "2"}


def test_mlflow_that_is_away_costs_one_warning_and_gets_everything_with_the_next_run(
    pair, in_flow, monkeypatch, caplog
):
    from mlflow.tracking import MlflowClient

    monkeypatch.setenv("GRISTMILL_TRACKING__URI", f"http://127.0.0.1:{free_port()}")
    assert results(in_flow(run(name="away"))) == ["ran", "ran"]
    assert sum("took nothing" in record.getMessage() for record in caplog.records) == 1
    monkeypatch.delenv("GRISTMILL_TRACKING__URI")
    in_flow(run("second.amount=2", name="back"))
    client = MlflowClient(f"sqlite:///{pair.folder}/work/mlflow.db")
    experiment = client.get_experiment_by_name("gristmill")
    assert experiment is not None
    names = sorted(str(found.info.run_name) for found in client.search_runs([experiment.experiment_id]))
    assert names == ["away", "back", "first", "second", "second"]
