from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.resources import Resources, TrackingResources
from tasks.tracking import RUN_DIRECTORY_VARIABLE, Tracker, describe_run, owned, sync, sync_pending


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    return Resources.model_validate({"work": tmp_path / "work", "tracking": {"uri": uri}})


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The spool directory of a pipeline run named `one`."""
    folder = tmp_path / "tracking" / "one"
    monkeypatch.setenv(RUN_DIRECTORY_VARIABLE, str(folder))
    describe_run(folder, "one", {"git.commit": "abc"})
    return folder


def runs(tracking: TrackingResources) -> dict:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking.uri)
    experiment = client.get_experiment_by_name(tracking.experiment)
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id])
    assert len({run.info.run_name for run in found}) == len(found)
    return {run.info.run_name: run for run in found}


def history(tracking: TrackingResources, run, name: str) -> list[tuple[int, float]]:
    from mlflow.tracking import MlflowClient

    points = MlflowClient(tracking.uri).get_metric_history(run.info.run_id, name)
    return sorted((point.step, point.value) for point in points)


def test_a_stage_that_is_killed_and_comes_back_stays_in_one_run(directory, resources):
    script = (
        "import os, signal\nfrom pathlib import Path\nfrom tasks.tracking import Tracker\n"
        "from tasks.resources import Resources\n"
        "t = Tracker.for_stage('pretrain', Resources(), {'depth': 2})\n"
        "t.metrics({'loss': 3.0}, 1)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", script], env=os.environ).returncode == -9
    with (directory / "pretrain.jsonl").open("a") as spool:
        spool.write('{"event": "metrics", "val')  # the kill came in the middle of a line
    sync(directory, resources.tracking)
    assert runs(resources.tracking)["pretrain"].info.status == "RUNNING"

    again = Tracker.for_stage("pretrain", resources, {"depth": 2})
    again.metrics({"loss": 2.0}, 2)
    again.finish("FINISHED", {"perplexity": 7.0})
    describe_run(directory, "one", {"git.commit": "abc", "snapshot": "s1"}, "FINISHED")
    sync(directory, resources.tracking)
    found = runs(resources.tracking)
    assert set(found) == {"one", "pretrain"}
    assert history(resources.tracking, found["pretrain"], "loss") == [(1, 3.0), (2, 2.0)]
    assert found["pretrain"].data.params == {"depth": "2"}
    assert found["pretrain"].data.tags["mlflow.parentRunId"] == found["one"].info.run_id
    assert {run.info.status for run in found.values()} == {"FINISHED"}
    assert found["one"].data.tags["snapshot"] == "s1"


def test_what_mlflow_missed_follows_once(directory, resources):
    from mlflow.exceptions import MlflowException

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = TrackingResources(uri=f"http://127.0.0.1:{nobody.getsockname()[1]}")
        tracker = Tracker.for_stage("sft", resources, {})
        tracker.metrics({"loss": 1.0}, 1)
        with pytest.raises(MlflowException, match="refused"):
            sync(directory, away)
    tracker.finish("FINISHED")
    describe_run(directory, "one", {}, "FINISHED")
    assert sync_pending(directory.parent, resources.tracking) == [directory]
    assert sync_pending(directory.parent, resources.tracking) == []
    assert history(resources.tracking, runs(resources.tracking)["sft"], "loss") == [(1, 1.0)]


def test_names_that_mlflow_refuses_are_written_so_that_it_takes_them(directory, resources):
    tracker = Tracker.for_stage("snapshot", resources, {"counts": {"GPL-2+ or CC": "a,b"}})
    tracker.metrics({"counts.license.GPL-2+ or CC-BY-SA-3.0": 3.0, "ünïcode (1)": 1.0})
    tracker.finish("FINISHED")
    sync(directory, resources.tracking)
    run = runs(resources.tracking)["snapshot"]
    assert run.data.metrics["counts.license.GPL-2_ or CC-BY-SA-3.0"] == 3.0
    assert run.data.params == {"counts.GPL-2_ or CC": "a,b"}


def test_a_sync_that_died_before_it_could_remember_makes_no_second_run(directory, resources):
    Tracker.for_stage("sft", resources, {"rate": 0.1}).metrics({"loss": 1.0}, 1)
    sync(directory, resources.tracking)
    state = json.loads((directory / "mlflow.json").read_text())
    (directory / "mlflow.json").write_text(json.dumps({"key": state["key"]}))
    sync(directory, resources.tracking)
    found = runs(resources.tracking)
    assert set(found) == {"one", "sft"}
    assert history(resources.tracking, found["sft"], "loss") == [(1, 1.0)]


def test_a_run_whose_flow_is_gone_is_recorded_as_killed_and_one_that_lives_is_left_alone(
    directory, resources
):
    Tracker.for_stage("ppo", resources, {})
    held = (
        "import sys\nfrom pathlib import Path\nfrom tasks.tracking import owned\n"
        f"with owned(Path({str(directory)!r})) as mine:\n    print(mine, flush=True)\n    sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", held], stdin=-1, stdout=-1, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "True\n"
        with owned(directory) as mine:
            assert not mine
        assert sync_pending(directory.parent, resources.tracking) == []
        owner.kill()
    assert sync_pending(directory.parent, resources.tracking) == [directory]
    assert {run.info.status for run in runs(resources.tracking).values()} == {"KILLED"}


def test_a_stage_that_runs_alone_brings_its_own_run(resources, monkeypatch):
    monkeypatch.delenv(RUN_DIRECTORY_VARIABLE, raising=False)
    tracker = Tracker.for_stage("clean", resources, {"words": {"minimum": 3}})
    tracker.tag(precision="bf16")
    tracker.finish("FINISHED", {"kept": 5.0})
    run = runs(resources.tracking)["clean"]
    assert run.data.params == {"words.minimum": "3"}
    assert run.data.metrics == {"kept": 5.0}
    assert run.data.tags["precision"] == "bf16"
    assert "mlflow.parentRunId" not in run.data.tags
