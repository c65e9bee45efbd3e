"""`gristmill ui`: both servers, the deployments of prefect.yaml, and a worker on this machine."""

from __future__ import annotations

import subprocess
import time
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NoReturn

from flows.process_group import end_on_sigterm
from flows.project import BadInput, module_command, program_environment
from flows.servers import (
    PATIENCE,
    STOP_SECONDS,
    Server,
    ServerFailed,
    check_port,
    note_ui,
    prefect_database,
    running_ui,
    server,
)
from flows.tracking import anchored
from tasks.resources import Resources

POOL = "local"


def serve(project: Path, resources: Resources) -> None:
    """Serve until Ctrl-C or SIGTERM, then stop everything that was started.

    MLflow's server is started where runs are kept on this machine; a server elsewhere is only named.

    Raises:
        BadInput: if a port is taken, or a `gristmill ui` of this project is running; nothing has started.
        ServerFailed: if a server does not start, or ends by itself.
    """
    work = project / resources.work
    host, port = resources.servers.host, resources.servers.prefect_port
    tracking = anchored(resources.tracking, project)
    own_mlflow = tracking.uri.startswith("sqlite:")
    if (url := running_ui(work)) is not None:
        raise BadInput(f"a `gristmill ui` is running for this project already: {url.removesuffix('/api')}")
    check_port(host, port, "servers.prefect_port")
    if own_mlflow:
        check_port(host, resources.servers.mlflow_port, "servers.mlflow_port")
    prefect_url = f"http://{host}:{port}"
    env = {
        **program_environment(),
        **prefect_database(work),
        "PREFECT_API_URL": f"{prefect_url}/api",
        "PREFECT_SERVER_UI_API_URL": f"{prefect_url}/api",  # what the page in the browser asks
        "GRISTMILL_PROJECT": str(project),
        **PATIENCE,
    }
    end_on_sigterm()
    with ExitStack() as stack:
        try:
            print("starting", flush=True)
            mlflow_url = tracking.uri
            servers = [stack.enter_context(_prefect(env, work, host, port))]
            if own_mlflow:
                mlflow_port = resources.servers.mlflow_port
                mlflow_url = f"http://{host}:{mlflow_port}"
                servers.append(stack.enter_context(_mlflow(env, work, host, mlflow_port, tracking.uri)))
            for started in servers:
                started.wait()
            _register(project, env)
            worker = stack.enter_context(_worker(env, work, prefect_url))
            servers.append(worker)
            stack.callback(_stop_flows, worker)
            stack.callback(note_ui(work, f"{prefect_url}/api").unlink)
            print(f"Prefect: {prefect_url}\nMLflow:  {mlflow_url}\nCtrl-C stops both", flush=True)
            _watch(servers)
        except KeyboardInterrupt:
            print("stopping", flush=True)


def _prefect(env: dict[str, str], work: Path, host: str, port: int) -> AbstractContextManager[Server]:
    command = module_command("prefect", "server", "start", "--host", host, "--port", str(port))
    health = f"http://{host}:{port}/api/health"
    return server("Prefect's server", command, env, health, work / "logs" / "prefect-server.log")


def _mlflow(
    env: dict[str, str], work: Path, host: str, port: int, uri: str
) -> AbstractContextManager[Server]:
    command = module_command(
        "mlflow", "server", "--host", host, "--port", str(port), "--workers", "1",
        "--backend-store-uri", uri, "--artifacts-destination", (work.resolve() / "mlartifacts").as_uri(),
    )  # fmt: skip
    env = env | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    return server(
        "MLflow's server", command, env, f"http://{host}:{port}/health", work / "logs" / "mlflow.log"
    )


def _worker(env: dict[str, str], work: Path, prefect_url: str) -> AbstractContextManager[Server]:
    # One run at a time: two on one machine would only slow each other, and in one folder wait for each other.
    command = module_command(
        "prefect",
        "worker",
        "start",
        "--pool",
        POOL,
        "--type",
        "process",
        "--name",
        "gristmill",
        "--limit",
        "1",
    )
    return server("the worker", command, env, f"{prefect_url}/api/health", work / "logs" / "worker.log")


def _stop_flows(worker: Server) -> None:
    """Let flows stop their stages and report while their server and worker are there: one SIGTERM, no more.

    A worker that is stopped leaves its flows Running in Prefect's records, and a second signal would cut
    short what a flow does on the first.
    """
    import psutil

    try:
        flows = psutil.Process(worker.process.pid).children()
        for flow in flows:
            flow.terminate()
    except psutil.NoSuchProcess:
        return
    psutil.wait_procs(flows, timeout=STOP_SECONDS)


def _register(project: Path, env: dict[str, str]) -> None:
    """Create the work pool and the deployments; what `prefect.yaml` says replaces what was there."""
    for arguments in (
        ["work-pool", "create", POOL, "--type", "process", "--overwrite"],
        ["deploy", "--all", "--prefect-file", str(project / "prefect.yaml")],
    ):
        done = subprocess.run(
            module_command("prefect", "--no-prompt", *arguments),
            cwd=project,
            env=env,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise ServerFailed(
                f"`prefect {' '.join(arguments)}` failed:\n{(done.stdout + done.stderr).strip()}"
            )


def _watch(servers: list[Server]) -> NoReturn:
    while True:
        for running in servers:
            if running.process.poll() is not None:
                raise ServerFailed(f"{running.what} ended by itself; see {running.log}")
        time.sleep(1)
