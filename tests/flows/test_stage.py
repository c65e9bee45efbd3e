from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from flows.project import BadInput
from flows.stage import StageFailed, run_stage


def running(folder: Path) -> list[int]:
    """Living processes whose current folder is the project's."""
    found = []
    for process in psutil.process_iter():
        try:
            living = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
            if living and Path(process.cwd()) == folder:
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} did not appear")


def test_a_stage_runs_then_is_unchanged_then_is_restored(pair, in_flow):
    assert in_flow(lambda: run_stage("first")).result == "ran"
    assert in_flow(lambda: run_stage("first")).result == "unchanged"
    (pair.folder / "made" / "first").unlink()
    (pair.folder / "dvc.lock").unlink()
    assert in_flow(lambda: run_stage("first")).result == "restored"
    assert (pair.folder / "made" / "first").read_text() == "source\nfirst 1\n"
    assert pair.executions == ["first"]


@pytest.mark.slow
def test_a_result_whose_parameters_were_edited_meanwhile_can_be_kept_as_the_message_says(project, in_flow):
    body = """
        import time
        Path("started").touch()
        while not Path("go").exists():
            time.sleep(0.05)
    """
    project.stage("first", ["source.txt"], body=body)
    project.commit()
    params = (project.folder / "params.yaml").read_text()

    def edit() -> None:
        wait_for(project.folder / "started")
        (project.folder / "params.yaml").write_text(params.replace("amount: 1", "amount: 2"))
        (project.folder / "go").touch()

    editor = threading.Thread(target=edit)
    editor.start()
    with pytest.raises(StageFailed, match="undo the change, then `dvc commit first`"):
        in_flow(lambda: run_stage("first"))
    editor.join()
    (project.folder / "params.yaml").write_text(params)
    subprocess.run([sys.executable, "-m", "dvc", "commit", "--force", "first"], check=True)
    assert in_flow(lambda: run_stage("first")).result == "unchanged"
    assert project.executions == ["first"]


def test_an_unknown_stage_is_refused_with_the_nearest_name(pair):
    with pytest.raises(BadInput, match="no stage `frist`; did you mean `first`"):
        run_stage("frist")


def test_a_killed_stage_is_tried_again_and_goes_on_from_what_it_kept(project, in_flow):
    body = """
        import os, signal
        kept = Path("work/kept")
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            kept.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
        made += kept.read_text()
    """
    project.stage("first", ["source.txt"], body=body, retries=2)
    project.commit()
    assert in_flow(lambda: run_stage("first")).result == "ran"
    assert project.executions == ["first", "first"]
    assert (project.folder / "made" / "first").read_text().endswith("half")


def test_a_kill_is_named_when_the_attempts_are_used_up(project, in_flow):
    body = "import os, signal; print('step 7', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    project.stage("first", ["source.txt"], body=body, retries=1)
    project.commit()
    with pytest.raises(StageFailed, match=r"first failed: killed by SIGKILL(?s:.)*step 7"):
        in_flow(lambda: run_stage("first"))
    assert project.executions == ["first", "first"]


def test_bad_input_is_not_tried_again_and_says_what_is_wrong(project, in_flow):
    project.stage("first", ["source.txt"], body="raise StageError('line 3 is no record')", retries=3)
    project.commit()
    with pytest.raises(StageFailed) as failed:
        in_flow(lambda: run_stage("first"))
    assert (failed.value.stage, failed.value.message) == ("first", "line 3 is no record")
    assert project.executions == ["first"]


def test_an_exception_is_told_in_one_line_without_its_traceback(project, in_flow):
    project.stage("first", ["source.txt"], body="raise RuntimeError('no luck')")
    project.commit()
    with pytest.raises(StageFailed) as failed:
        in_flow(lambda: run_stage("first"))
    assert failed.value.message == "RuntimeError: no luck"


SLEEPY = """
    import subprocess, sys, time
    subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); time.sleep(600)"])
    Path("started").touch()
    time.sleep(600)
"""


def test_a_timeout_ends_every_process_of_the_stage(project, in_flow):
    project.stage("first", ["source.txt"], body=SLEEPY, timeout_seconds=8)
    project.commit()
    with pytest.raises(StageFailed, match="took longer than 8 s"):
        in_flow(lambda: run_stage("first"))
    assert (project.folder / "started").exists()
    assert running(project.folder) == []


def test_a_cancelled_run_leaves_no_process(project, in_flow):
    project.stage("first", ["source.txt"], body=SLEEPY)
    project.commit()

    def interrupt() -> None:
        wait_for(project.folder / "started")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        in_flow(lambda: run_stage("first"))
    assert running(project.folder) == []
    assert not (project.folder / "made" / "first").exists()
