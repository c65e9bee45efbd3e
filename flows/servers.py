"""Servers of Prefect and MLflow on this machine: started, waited for, stopped with all they started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from flows.process_group import process_group
from flows.project import BadInput, module_command, program_environment

START_SECONDS = 180.0
"""The first start creates the databases."""

STOP_SECONDS = 20.0
"""A worker's flow needs some, to stop its stage and to report."""


class ServerFailed(Exception):
    """A server did not start; the message holds the end of its log."""


def prefect_database(work: Path) -> dict[str, str]:
    """Keep Prefect's runs beside the project's other records, unless its place is set already.

    So two projects do not see each other's runs and deployments, a Prefect of another version that the user
    has does not meet this one's tables, and `gristmill ui` shows what `gristmill run` did.
    """
    name = "PREFECT_API_DATABASE_CONNECTION_URL"
    if name in os.environ or "PREFECT_SERVER_DATABASE_CONNECTION_URL" in os.environ:
        return {}
    work.mkdir(parents=True, exist_ok=True)
    return {name: f"sqlite+aiosqlite:///{work.resolve() / 'prefect.db'}"}


PATIENCE = {"PREFECT_SERVER_DATABASE_TIMEOUT": "60", "PREFECT_SERVER_DATABASE_CONNECTION_TIMEOUT": "60"}
"""Stages may take all the processor: the server then answers late, not with an error."""


@dataclass(frozen=True)
class Server:
    """A server that has been started, and perhaps does not answer yet."""

    what: str
    health: str
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Wait until it answers.

        Raises:
            ServerFailed: if it ends instead, or does not answer in `START_SECONDS`.
        """
        deadline = time.monotonic() + START_SECONDS
        while not (self.process.poll() is None and answers(self.health)):
            if self.process.poll() is not None:
                end = "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-10:])
                raise ServerFailed(
                    f"{self.what} ended with status {self.process.returncode}; the end of {self.log}:\n{end}"
                )
            if time.monotonic() > deadline:
                raise ServerFailed(
                    f"{self.what} does not answer at {self.health} after {START_SECONDS:g} s; see {self.log}"
                )
            time.sleep(0.1)


@contextmanager
def server(what: str, command: list[str], env: dict[str, str], health: str, log: Path) -> Iterator[Server]:
    """Start a server for the time of the block, with its output in a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("wb") as output,
        process_group(command, cwd=Path.cwd(), env=env, output=output, grace=STOP_SECONDS) as process,
    ):
        yield Server(what, health, process, log)


@contextmanager
def prefect_for_a_run(work: Path) -> Iterator[Callable[[], None]]:
    """Choose the server that a flow of this process talks to; call this before Prefect is imported.

    In this order: the one that the user has configured, the one of a `gristmill ui` on this project, one of
    its own for the time of the block. Yields what waits for that last one, which starts meanwhile.
    """
    url = _configured_url() or running_ui(work)
    if url is not None:
        os.environ["PREFECT_API_URL"] = url
        yield lambda: None
        return
    port = free_port()
    url = f"http://127.0.0.1:{port}/api"
    # What Prefect does for a flow without a server, but beside the imports, and in a session of its own:
    # Ctrl-C on the terminal must reach the flow first and leave it a server to report to.
    command = module_command(
        "uvicorn", "--factory", "flows.prefect_server:create_app", "--host", "127.0.0.1",
        "--port", str(port), "--log-level", "error",
    )  # fmt: skip
    env = {
        **program_environment(),
        **prefect_database(work),
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT__SERVER_EPHEMERAL": "1",
        "PREFECT__SERVER_FINAL": "1",
        **PATIENCE,
    }
    with server("Prefect's server", command, env, f"{url}/health", work / "logs" / "prefect.log") as own:
        os.environ["PREFECT_API_URL"] = url
        yield partial(_ready, own)


def _ready(own: Server) -> None:
    from flows.logs import hide_links

    hide_links()
    own.wait()


def answers(url: str) -> bool:
    """Whether an HTTP server answers 200 at ``url``."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except (OSError, ValueError):  # urllib's errors are OSErrors; ValueError: no URL
        return False


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def port_holder(host: str, port: int) -> str | None:
    """Who listens on a port, in words; None if it is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return _listener(port) or error.strerror
    return None


def check_port(host: str, port: int, key: str) -> None:
    """Raise `BadInput` if a port is taken, naming its key in ``resources.yaml``."""
    holder = port_holder(host, port)
    if holder is not None:
        raise BadInput(
            f"port {port} on {host} is taken by {holder}: end that, or set {key} in resources.yaml to another"
        )


def note_ui(work: Path, prefect_url: str) -> Path:
    """Leave word of a `gristmill ui`, so that `gristmill run` reports to its server."""
    path = work / "servers.json"
    path.write_text(json.dumps({"prefect": prefect_url}), "utf-8")
    return path


def running_ui(work: Path) -> str | None:
    """The address of the Prefect server of a `gristmill ui` on this project, if one is running."""
    path = work / "servers.json"
    if not path.exists():
        return None
    url = json.loads(path.read_text("utf-8"))["prefect"]
    return url if answers(f"{url}/health") else None


def _configured_url() -> str | None:
    """The server that the environment or the user's active Prefect profile names."""
    if os.environ.get("PREFECT_API_URL"):
        return os.environ["PREFECT_API_URL"]
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml"))
    try:
        content = tomllib.loads(profiles.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return None
    active = os.environ.get("PREFECT_PROFILE", content.get("active", ""))
    return content.get("profiles", {}).get(active, {}).get("PREFECT_API_URL")


def _listener(port: int) -> str | None:
    import psutil

    try:
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr[1] == port:
                if connection.pid is None:
                    return "another process"
                return f"process {connection.pid} ({psutil.Process(connection.pid).name()})"
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return None
    return None
