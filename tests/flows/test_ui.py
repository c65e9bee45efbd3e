from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.cli import main
from flows.servers import free_port


def at_work_in(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            living = process != psutil.Process() and process.status() != psutil.STATUS_ZOMBIE
            if living and Path(process.cwd()) == folder:
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def ask(url: str, body: dict | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.mark.parametrize("key", ["prefect_port", "mlflow_port"])
def test_a_busy_port_is_refused_before_anything_starts(pair, capsys, key):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        ports = {"prefect_port": free_port(), "mlflow_port": free_port(), key: port}
        (pair.folder / "resources.yaml").write_text(json.dumps({"servers": ports}))
        assert main(["ui"]) == 2
    complaint = capsys.readouterr().err
    assert f"port {port} on 127.0.0.1 is taken by process" in complaint
    assert f"servers.{key} in resources.yaml" in complaint
    assert not (pair.folder / "work" / "logs").exists()


@pytest.mark.slow
def test_ui_serves_runs_a_deployment_and_leaves_nothing_behind(journey):
    prefect, mlflow = free_port(), free_port()
    servers = {"prefect_port": prefect, "mlflow_port": mlflow}
    (journey.folder / "resources.yaml").write_text(json.dumps({"servers": servers}))
    ui = subprocess.Popen([sys.executable, "-m", "flows.cli", "ui"], stdout=subprocess.PIPE, text=True)
    try:
        assert ui.stdout is not None
        said = [ui.stdout.readline() for _ in range(4)]
        assert said[1:3] == [
            f"Prefect: http://127.0.0.1:{prefect}\n",
            f"MLflow:  http://127.0.0.1:{mlflow}\n",
        ]
        api = f"http://127.0.0.1:{prefect}/api"
        deployments = ask(f"{api}/deployments/filter", {})
        found = {deployment["entrypoint"]: deployment["id"] for deployment in deployments}
        assert set(found) == {
            f"flows.{name}.{name}"
            for name in ("pipeline", "corpus", "pretraining", "alignment", "release", "rebalance")
        }
        run = ask(
            f"{api}/deployments/{found['flows.corpus.corpus']}/create_flow_run",
            {"parameters": {"run": {"set": ["mix.amount=4"], "name": "four"}}},
        )
        deadline = time.monotonic() + 300
        while (state := ask(f"{api}/flow_runs/{run['id']}")["state"])["type"] not in (
            "COMPLETED",
            "FAILED",
            "CRASHED",
        ):
            assert time.monotonic() < deadline
            time.sleep(1)
        assert state["type"] == "COMPLETED", state
        assert "mix 4" in (journey.folder / "work/runs/four/made/encode").read_text()
        assert main(["ui"]) == 2
    finally:
        ui.send_signal(signal.SIGTERM)
        ui.wait(timeout=120)
    assert ui.returncode == 0
    assert at_work_in(journey.folder) == []
    assert not (journey.folder / "work" / "servers.json").exists()
