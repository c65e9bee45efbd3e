"""The contract of a stage, on a small stage run as a real command."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.stage import DocumentReport, StageError, _refusal, publish

STAGE = '''
import errno, os, sys, time
from pathlib import Path
from pydantic import Field
from tasks.resources import Resources
from tasks.stage import Input, Output, StageError, StageParams, StageReport, run_as_stage, stage

class CopyParams(StageParams):
    times: int = Field(default=1, ge=1)
    mood: str = "good"

class CopyReport(StageReport):
    characters: int

@stage
def copy(text: Input, copied: Output, params: CopyParams, resources: Resources) -> CopyReport:
    """Copy a text."""
    copied.mkdir()
    content = text.read_text() * params.times
    (copied / "out.txt").write_text(content)
    if params.mood == "bad input":
        raise StageError("text: line 3 is broken; it would be right with a colon")
    if params.mood == "full disk":
        raise OSError(errno.ENOSPC, "No space left on device", str(copied))
    if params.mood == "full disk on a worker":
        raise RuntimeError("Job aborted: java.io.IOException: No space left on device")
    if params.mood == "quota":
        raise OSError(errno.EDQUOT, "Disk quota exceeded", str(copied))
    if params.mood == "read-only":
        raise OSError(errno.EROFS, "Read-only file system", "/mnt/frozen")
    if params.mood == "denied on a worker":
        raise RuntimeError("Job aborted:\\n  PermissionError: [Errno 13] Permission denied: 'in/x'\\n at J")
    if params.mood == "damaged under Spark":
        raise RuntimeError("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file f.pq.\\n at J")
    if params.mood == "no memory":
        try:
            raise RuntimeError("Lost task 0.0: java.lang.OutOfMemoryError: Java heap space")
        finally:
            raise ConnectionRefusedError(111, "Connection refused")  # the Java that is to be stopped is gone
    if params.mood == "broken":
        raise RuntimeError("a fault of our own")
    if params.mood == "waits":
        print("waiting", flush=True)
        while not Path("go").exists():
            time.sleep(0.05)
    if params.mood == "slow":
        print("sleeping", flush=True)
        time.sleep(60)
    return CopyReport(characters=len(content))

if __name__ == "__main__":
    run_as_stage(copy)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "copy_stage.py").write_text(STAGE, "utf-8")
    (tmp_path / "text.txt").write_text("abc", "utf-8")
    (tmp_path / "params.yaml").write_text("copy: {times: 2}\n", "utf-8")
    return tmp_path


def start(project: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "copy_stage", "text.txt", "out/copied"],
        cwd=project,
        env=os.environ | {"GRISTMILL_RUN_DIRECTORY": str(project / "spool")} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(project: Path, **environment: str) -> tuple[int, str]:
    process = start(project, **environment)
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr


def set_params(project: Path, text: str) -> None:
    (project / "params.yaml").write_text(text, "utf-8")


def test_a_stage_writes_its_output_its_report_and_its_timing(project: Path) -> None:
    status, _ = run(project)
    assert status == 0
    assert (project / "out/copied/out.txt").read_text() == "abcabc"
    assert json.loads((project / "reports/copy.json").read_text()) == {"characters": 6}
    assert json.loads((project / "work/stages/copy.json").read_text())["seconds"] > 0


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ("copy: {tims: 2}", "`tims` is not a known key; did you mean `times`?"),
        ("copy: {times: two}", "`times`: Input should be a valid integer (given: 'two')"),
        ("copy: {times: 0}", "`times`: Input should be greater than or equal to 1 (given: 0)"),
        ("copy: [1]", "params.yaml: copy"),
        ("copy: {times: [", "params.yaml is not valid YAML"),
        ("- copy", "params.yaml must hold sections"),
    ],
)
def test_wrong_parameters_are_refused_before_any_work(project: Path, params: str, told: str) -> None:
    set_params(project, params)
    status, stderr = run(project)
    assert status == 2
    assert told in stderr
    assert "Traceback" not in stderr
    assert not (project / "out").exists()


def test_wrong_resources_are_refused_wherever_they_stand(project: Path) -> None:
    (project / "resources.yaml").write_text("spark: {mastr: local}\n", "utf-8")
    assert "`spark.mastr` is not a known key; did you mean `master`?" in run(project)[1]
    (project / "resources.yaml").unlink()
    status, stderr = run(project, GRISTMILL_TRAINING__DEVICES="none")
    assert status == 2
    assert "training.devices" in stderr


def test_a_missing_input_is_named_with_what_to_do(project: Path) -> None:
    (project / "text.txt").unlink()
    status, stderr = run(project)
    assert status == 2
    assert "its input text.txt does not exist" in stderr
    assert "gristmill run" in stderr


@pytest.mark.parametrize(
    ("mood", "status", "told", "traceback"),
    [
        ("bad input", 2, "error: copy: text: line 3 is broken", False),
        ("full disk", 2, "error: copy: the disk is full", False),
        ("full disk on a worker", 2, "error: copy: the disk is full", False),
        ("quota", 2, "error: copy: the disk is full", False),
        ("read-only", 2, "error: copy: [Errno 30] Read-only file system: '/mnt/frozen'. The folder", False),
        ("denied on a worker", 2, "copy: PermissionError: [Errno 13] Permission denied: 'in/x'. The", False),
        ("damaged under Spark", 2, "while reading file f.pq. It is damaged: run the stage", False),
        ("no memory", 2, "error: copy: Spark's Java used up its memory: raise spark.driver_memory", False),
        ("broken", 1, "a fault of our own", True),
    ],
)
def test_a_stage_that_fails_leaves_the_old_output_and_no_half_of_a_new_one(
    project: Path, mood: str, status: int, told: str, traceback: bool
) -> None:
    assert run(project)[0] == 0
    set_params(project, f"copy: {{times: 3, mood: {mood}}}")
    failed, stderr = run(project)
    assert failed == status
    assert told in stderr
    assert ("Traceback" in stderr) == traceback
    assert (project / "out/copied/out.txt").read_text() == "abcabc"
    assert [path.name for path in (project / "out").iterdir()] == ["copied"]
    assert not (project / "reports/copy.json").exists()


def test_of_the_file_systems_of_a_stage_the_fullest_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=0 if path == full else 2**30))
    for error in (
        RuntimeError("Job aborted: No space left on device"),
        OSError(
            errno.ENOSPC, "No space left on device", str(tmp_path / "in/a"), None, str(full / "unique/a")
        ),
    ):
        told = _refusal("copy", error, [tmp_path / "in", full / "unique/not/there", tmp_path / "work"])
        assert told is not None
        assert f"the disk is full ({full}: 0 MiB free)" in told


def test_a_killed_stage_leaves_nothing_that_the_next_run_minds(project: Path) -> None:
    set_params(project, "copy: {mood: slow}")
    process = start(project)
    assert process.stdout is not None
    assert process.stdout.readline() == "sleeping\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.communicate()
    assert not (project / "out/copied").exists()
    set_params(project, "copy: {times: 1}")
    assert run(project)[0] == 0
    assert [path.name for path in (project / "out").iterdir()] == ["copied"]


def test_of_two_runs_at_once_the_second_is_refused_and_the_first_goes_on(project: Path) -> None:
    set_params(project, "copy: {mood: waits}")
    first = start(project)
    assert first.stdout is not None
    assert first.stdout.readline() == "waiting\n"
    status, stderr = run(project)
    assert status == 2
    assert "another process is writing out/copied" in stderr
    (project / "go").touch()
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert (project / "out/copied/out.txt").read_text() == "abc"
    assert [path.name for path in (project / "out").iterdir()] == ["copied"]


@pytest.mark.parametrize("output", ["folder", ".", "folder/../folder", "link"])
def test_an_output_that_would_replace_an_input_is_refused(project: Path, output: str) -> None:
    (project / "folder").mkdir()
    (project / "folder/text.txt").write_text("abc")
    (project / "link").symlink_to("folder")
    done = subprocess.run(
        [sys.executable, "-m", "copy_stage", "folder/text.txt", output],
        cwd=project,
        env=os.environ | {"GRISTMILL_RUN_DIRECTORY": str(project / "spool")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "would replace its input folder/text.txt" in done.stderr
    assert (project / "folder/text.txt").read_text() == "abc"


def test_parameters_edited_during_a_run_are_not_recorded_as_its_own(project: Path) -> None:
    set_params(project, "copy: {mood: waits}")
    process = start(project)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    set_params(project, "copy: {mood: waits, times: 3}")
    (project / "go").touch()
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "section `copy` of params.yaml changed while the stage was running" in stderr
    # What `dvc commit` needs to keep the result is there.
    assert (project / "out/copied/out.txt").read_text() == "abc"
    assert (project / "reports/copy.json").exists()


def test_publish_replaces_a_directory_whole(tmp_path: Path) -> None:
    for content in ("one", "two"):
        with publish(tmp_path / "out") as partial:
            partial.mkdir()
            (partial / content).touch()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["two"]


def test_what_was_there_comes_back_if_a_process_was_killed_between_the_two_renames(tmp_path: Path) -> None:
    (tmp_path / ".out.retired").mkdir()
    (tmp_path / ".out.retired" / "one").touch()
    with pytest.raises(RuntimeError), publish(tmp_path / "out"):
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["one"]


def test_a_link_gives_way_and_what_it_led_to_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for target in ("elsewhere", "nowhere"):
        (tmp_path / "out").symlink_to(target)
        with publish(tmp_path / "out") as partial:
            partial.mkdir()
        assert not (tmp_path / "out").is_symlink()
        (tmp_path / "out").rmdir()
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


def test_a_stage_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="without writing"), publish(tmp_path / "out"):
        time.sleep(0)


def test_documents_that_disappear_are_an_error() -> None:
    with pytest.raises(ValueError, match="unaccounted for: 3 in, but 1 kept"):
        DocumentReport(records_in=3, kept=1, removed=1, removed_by_rule={"rule": 1})
    with pytest.raises(ValueError, match="count 0"):
        DocumentReport(records_in=2, kept=1, removed=1)
