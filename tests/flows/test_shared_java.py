"""Spark stages of a run take one Java, and nothing of a failed attempt stays at work in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from flows.run_parameters import AS_IT_IS
from flows.shared_java import SharedJava
from flows.workspace import workspace

SESSION = """
from pathlib import Path
from tasks.resources import Resources, SparkResources
from tasks.spark import spark_session
with spark_session("test", Resources(work=Path("work"), spark=SparkResources(master="local[1]"))) as spark:
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    print(java, spark.range(5).count(), spark.sparkContext.appName)
"""

ON_SPARK = """
from tasks.resources import Resources, SparkResources
from tasks.spark import spark_session
with spark_session("toy", Resources(work=Path("work"), spark=SparkResources(master="local[1]"))) as spark:
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    with Path("javas").open("a") as javas:
        javas.write(f"{java}\\n")
"""

DIES_ONCE = """
    if not Path("work/died").exists():
        Path("work/died").touch()
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def java(tmp_path: Path) -> Iterator[SharedJava]:
    (tmp_path / "resources.yaml").write_text("work: work\nspark: {master: 'local[1]'}\n")
    shared = SharedJava(tmp_path, tmp_path / "java.log")
    yield shared
    shared.stop()


def session(folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """The id of the Java that a session in a process of its own runs in, and what else it printed."""
    shown = subprocess.run(
        [sys.executable, "-c", SESSION],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert shown.returncode == 0, shown.stderr
    number, rest = shown.stdout.split(maxsplit=1)
    return int(number), rest.strip()


def test_sessions_one_after_the_other_run_in_one_java(java: SharedJava, tmp_path: Path) -> None:
    first = session(tmp_path, java.environment())
    assert first == session(tmp_path, java.environment())
    assert first[1] == "5 test"
    assert psutil.pid_exists(first[0])
    java.stop()
    assert not psutil.pid_exists(first[0])


@pytest.mark.slow
def test_a_java_that_died_is_replaced(java: SharedJava, tmp_path: Path) -> None:
    lost, _ = session(tmp_path, java.environment())
    os.kill(lost, signal.SIGKILL)
    psutil.wait_procs([psutil.Process(lost)] if psutil.pid_exists(lost) else [], timeout=30)
    assert session(tmp_path, java.environment())[0] != lost


def test_without_a_java_stages_get_nothing_and_say_what_is_wrong_themselves(tmp_path: Path) -> None:
    (tmp_path / "resources.yaml").write_text("spark: {driver_memory: much}\n")
    shared = SharedJava(tmp_path, tmp_path / "java.log")
    assert shared.environment() == {}
    assert "driver_memory" in (tmp_path / "java.log").read_text()
    shared.stop()


def test_the_host_ends_with_its_java(tmp_path: Path) -> None:
    (tmp_path / "resources.yaml").write_text("work: work\nspark: {master: 'local[1]'}\n")
    with subprocess.Popen(
        [sys.executable, "-m", "tasks.java_host"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        variables = json.loads(host.stdout.readline())
        number, _ = session(tmp_path, variables)
        os.kill(number, signal.SIGKILL)
        assert host.wait(timeout=60) == 0


def test_the_spark_stages_of_a_flow_share_a_java_until_one_fails(project, in_flow, monkeypatch) -> None:
    monkeypatch.setattr("flows.graph.SPARK_CODE", "spark.txt")
    (project.folder / "spark.txt").touch()
    project.stage("one", ["source.txt", "spark.txt"], body=ON_SPARK)
    project.stage("two", ["one", "spark.txt"], body=ON_SPARK + DIES_ONCE, retries=1)
    project.stage("three", ["two", "spark.txt"], body=ON_SPARK)
    project.stage("plain", ["three"])
    project.commit()

    def journey() -> list[bool]:
        with workspace(AS_IT_IS, "one", "two", "three", "plain") as here:
            here.run_stages("one", "two", "three", "plain")
            javas = [int(line) for line in (project.folder / "javas").read_text().split()]
            assert javas[0] == javas[1] != javas[2] == javas[3]
            return [psutil.pid_exists(number) for number in javas]

    # The last stage does not run on Spark: Java's memory was given back before it.
    assert in_flow(journey) == [False] * 4
