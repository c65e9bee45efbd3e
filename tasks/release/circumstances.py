"""The circumstances of a run: what two equal runs do not share, and the page shows all the same."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tasks.corpus.policies.verdict_changes import VerdictChanges
from tasks.parameters import read_yaml
from tasks.resources import Resources
from tasks.stage import StageError
from tasks.tracking import RUN_DIRECTORY_VARIABLE


@dataclass(frozen=True)
class StageTiming:
    """How long a stage took when it last ran on this machine, and the most memory that it held."""

    seconds: float
    peak_memory_mib: float


@dataclass(frozen=True)
class TrackedRun:
    """Where MLflow has the run. ``link`` is None where a server must be started first with ``command``."""

    identifier: str
    uri: str
    link: str | None
    command: str


@dataclass(frozen=True)
class Circumstances:
    """When, where and from which code a run was made. What is not known is None."""

    name: str | None = None
    written_at: str | None = None
    host: str | None = None
    commit: str | None = None
    dirty: bool = False
    tracked: TrackedRun | None = None
    timings: dict[str, StageTiming] = field(default_factory=dict)
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    verdict_changes: VerdictChanges | None = None
    """what the last change of clean's rules here changed"""


def look_around(resources: Resources, root: Path) -> Circumstances:
    """Read git, the clock, the spool of the run, the timings of stages, and ``params.yaml`` in ``root``.

    Raises:
        StageError: naming a file of timings, tracking or verdicts that is there and is broken.
    """
    spool = _spool(resources.work)
    commit = _git(root, "rev-parse", "HEAD")
    params = root / "params.yaml"
    return Circumstances(
        name=spool.name if spool else None,
        written_at=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        host=socket.gethostname(),
        commit=commit,
        dirty=bool(commit and _git(root, "status", "--porcelain", "--untracked-files=no")),
        tracked=_tracked(spool, resources) if spool else None,
        timings=_timings(resources.work / "stages"),
        parameters=read_yaml(params) if params.exists() else {},
        verdict_changes=_verdict_changes(resources.kept / "clean" / "changes.json"),
    )


def _verdict_changes(path: Path) -> VerdictChanges | None:
    if not path.exists():
        return None
    try:
        return VerdictChanges.model_validate_json(path.read_bytes())
    except ValidationError:
        raise StageError(f"{path} is not what clean writes of a change of rules; remove it") from None


def _spool(work: Path) -> Path | None:
    """The directory of this pipeline run, or of the newest one."""
    given = os.environ.get(RUN_DIRECTORY_VARIABLE)
    if given:
        return Path(given)
    runs = [path.parent for path in (work / "tracking").glob("*/mlflow.json")]
    return max(runs, key=lambda path: path.stat().st_mtime, default=None)


def _tracked(spool: Path, resources: Resources) -> TrackedRun | None:
    path = spool / "mlflow.json"
    if not path.exists():
        return None
    state = _json(path)
    run = state.get("run") or next((v for k, v in sorted(state.items()) if k.endswith(".run")), None)
    if run is None:
        return None
    uri, servers = str(state.get("uri", resources.tracking.uri)), resources.servers
    address = f"#/experiments/{state.get('experiment')}/runs/{run}"
    if uri.startswith(("http://", "https://")):
        return TrackedRun(run, uri, f"{uri.rstrip('/')}/{address}", f"{uri.rstrip('/')}/{address}")
    local = f"http://{servers.host}:{servers.mlflow_port}/{address}"
    return TrackedRun(run, uri, local, f"mlflow ui --backend-store-uri {uri} --port {servers.mlflow_port}")


def _timings(directory: Path) -> dict[str, StageTiming]:
    found = {}
    for path in sorted(directory.glob("*.json")):
        content = _json(path)
        try:
            found[path.stem] = StageTiming(float(content["seconds"]), float(content["peak_memory_mib"]))
        except (KeyError, TypeError, ValueError) as error:
            raise StageError(f"{path} is broken: {error!r}; remove it") from None
    return found


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise StageError(f"{path} is broken: {error}; remove it") from None
    if not isinstance(content, dict):
        raise StageError(f"{path} is broken: it holds no object; remove it")
    return content


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
