from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from flows import corpus, pipeline
from flows.cli import main


def gristmill(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "flows.cli", *arguments], capture_output=True, text=True)


@pytest.fixture
def configured_server(prefect_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs report to the server of the suite, as the user's PREFECT_API_URL would have it."""
    from prefect.settings import PREFECT_API_URL

    monkeypatch.setenv("PREFECT_API_URL", PREFECT_API_URL.value() or "")


def test_help_names_every_command_and_loads_nothing_heavy():
    check = "import sys; from flows.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    shown = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout
    text, _, modules = shown.rpartition("\n\n") if "\n\n" in shown else (shown, "", shown)
    for command in ("run", "ui", "chat", "explain", "report", "doctor"):
        assert f"    {command}" in text
    assert not {"prefect", "dvc", "mlflow", "torch", "pydantic"} & set(modules.split())


def test_outside_a_project_it_says_where_it_looked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run"]) == 2
    assert f"error: there is no dvc.yaml in {tmp_path}" in capsys.readouterr().err


def test_the_journey_runs_once_and_then_has_nothing_to_do(journey):
    first = gristmill("run")
    assert first.returncode == 0, first.stderr
    assert sorted(journey.executions) == sorted(pipeline.STAGES)
    assert "15 of 15 stages done" in first.stderr
    again = gristmill("run")
    assert again.returncode == 0
    assert "nothing to do: all 15 stages are up to date" in again.stderr
    assert len(journey.executions) == 15

    params = (journey.folder / "params.yaml").read_text()
    (journey.folder / "params.yaml").write_text(params.replace("ppo:\n  amount: 1", "ppo:\n  amount: 2"))
    assert gristmill("run").returncode == 0
    assert journey.executions[15:] == ["ppo", "assess", "release", "report"]


def test_a_failed_stage_is_named_with_its_message_and_no_traceback(journey, configured_server):
    code = (journey.folder / "toy" / "clean.py").read_text()
    broken = code.replace("    pass", "    raise StageError('part-00003 is no Parquet file')")
    (journey.folder / "toy" / "clean.py").write_text(broken)
    done = gristmill("run", "corpus")
    assert done.returncode == 1
    assert "error: stage clean failed: part-00003 is no Parquet file\nmend that; the same" in done.stderr
    assert "Traceback" not in done.stderr
    assert journey.executions == ["collect", "score", "clean"]


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("params.yaml", "collect: {amuont: 1}", "`amuont` is not a known key; did you mean `amount`"),
        (
            "resources.yaml",
            "spark: {mastr: local}",
            "`spark.mastr` is not a known key; did you mean `master`",
        ),
    ],
)
def test_a_mistake_in_a_file_is_refused_before_anything_starts(
    journey, configured_server, file, content, complaint
):
    (journey.folder / file).write_text(content)
    done = gristmill("run")
    assert done.returncode == 2
    assert str(journey.folder / file) in done.stderr
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert journey.executions == []


def test_a_name_that_git_would_not_take_is_refused_before_a_server_starts(journey, capsys):
    assert main(["run", "--name", "a name"]) == 2
    assert "error: --name a name" in capsys.readouterr().err
    assert not (journey.folder / "work" / "logs").exists()


# A shell starts what it puts in the background deaf to Ctrl-C, and these tests with it.
HEEDS_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from flows.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 130, marks=pytest.mark.slow),  # the way of Ctrl-C
        pytest.param(signal.SIGKILL, -9, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_leaves_no_process_and_goes_on_later(journey, number, status):
    code = (journey.folder / "toy" / "clean.py").read_text()
    slow = code.replace("    pass", "    import time; Path('started').touch(); time.sleep(600)")
    (journey.folder / "toy" / "clean.py").write_text(slow)
    run = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "run", "corpus"], stderr=subprocess.PIPE, text=True
    )
    while not (journey.folder / "started").exists():
        assert run.poll() is None
        time.sleep(0.1)
    run.send_signal(number)
    _, shown = run.communicate(timeout=120)
    assert run.returncode == status
    assert number == signal.SIGKILL or "the same command goes on" in shown
    deadline = time.monotonic() + 60
    while (left := at_work_in(journey.folder)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    (journey.folder / "toy" / "clean.py").write_text(code)
    assert gristmill("run", "corpus").returncode == 0
    assert journey.executions == ["collect", "score", "clean", *corpus.STAGES[2:]]


def at_work_in(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            living = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
            if living and Path(process.cwd()) == folder:
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_report_prints_its_path_or_says_how_to_make_one(pair, capsys):
    assert main(["report", "--no-open"]) == 2
    assert "`gristmill run` makes it" in capsys.readouterr().err
    page = pair.folder / "reports" / "index.html"
    page.parent.mkdir()
    page.touch()
    assert main(["report", "--no-open"]) == 0
    assert capsys.readouterr().out == f"{page}\n"


def test_chat_and_explain_say_what_is_missing(pair, capsys):
    assert main(["chat"]) == 2
    assert f"there is no model in {pair.folder / 'artifacts' / 'release'}" in capsys.readouterr().err
    assert main(["chat", "--temperature", "-1"]) == 2
    assert "--temperature -1.0: it must be 0 or more" in capsys.readouterr().err
    assert main(["explain", "00ff"]) == 2
    assert "has no documents yet" in capsys.readouterr().err
