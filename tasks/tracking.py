"""Tracking that training never waits for: stages write a spool, a sync brings it to MLflow.

A stage appends lines of JSON to its spool file (cheap, local, survives a kill). `sync` reads the spools of a
run's directory and writes them to MLflow: one run for the pipeline, one nested run for each stage. It may be
called at any time and as often as one likes: it remembers how far it got, so an MLflow server that was down
gets everything later, and a stage that was killed and came back goes on in the run it had.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tasks.resources import Resources, TrackingResources

log = logging.getLogger("gristmill")

RUN_DIRECTORY_VARIABLE = "GRISTMILL_RUN_DIRECTORY"
"""Set by a flow: the spool directory of the pipeline run that the stage belongs to."""

DESCRIPTION = "run.json"
STATE = "mlflow.json"
KEY_TAG = "gristmill.key"
"""What tells a run in MLflow from all others, so that one whose creation was not confirmed is found again."""


class Tracker:
    """Takes what a stage has to tell while it runs. Without a path it takes everything and keeps nothing."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._alone: TrackingResources | None = None

    @classmethod
    def for_stage(cls, stage: str, resources: Resources, params: dict[str, Any]) -> Tracker:
        """Open the spool of a stage: in the pipeline run's directory, or in one of its own."""
        directory = os.environ.get(RUN_DIRECTORY_VARIABLE)
        if directory is None:
            directory = resources.work / "tracking" / time.strftime(f"{stage}-%Y%m%dT%H%M%S")
        tracker = cls(Path(directory) / f"{stage}.jsonl")
        if RUN_DIRECTORY_VARIABLE not in os.environ:
            tracker._alone = resources.tracking
        tracker._write("start", stage=stage, params=dict(_flat(params)))
        return tracker

    def metrics(self, values: dict[str, float], step: int = 0) -> None:
        """Record measurements at a step."""
        self._write("metrics", values=values, step=step)

    def tag(self, **tags: str) -> None:
        """Record facts that are no numbers: the data snapshot's hash, the resolved precision."""
        self._write("tags", values=tags)

    def finish(
        self, status: str, metrics: dict[str, float] | None = None, artifacts: list[Path] | None = None
    ) -> None:
        """Record how the stage ended: FINISHED, FAILED or KILLED; a stage that runs alone syncs by itself."""
        if metrics:
            self.metrics(metrics)
        self._write("finish", status=status, artifacts=[str(path.resolve()) for path in artifacts or []])
        if self._alone is not None and self._path is not None:
            _sync_or_say_why_not(self._path.parent, self._alone)

    def _write(self, event: str, **content: Any) -> None:
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"event": event, "time": int(time.time() * 1000), **content}) + "\n"
        with self._path.open("a+b") as spool:
            if spool.tell() and not _ends_a_line(spool):  # a kill cut the last one
                line = "\n" + line
            spool.write(line.encode())


def describe_run(directory: Path, name: str, tags: dict[str, str], status: str | None = None) -> None:
    """Say what the run that encloses the stages' runs is: its name, its tags, and in the end how it ended."""
    directory.mkdir(parents=True, exist_ok=True)
    _State(directory / DESCRIPTION).put(name=name, tags=tags, status=status)


def described(directory: Path) -> dict[str, Any]:
    """What `describe_run` last said of a directory; empty if nothing."""
    return _State(directory / DESCRIPTION).content


@contextmanager
def owned(directory: Path) -> Iterator[bool]:
    """Own a run's directory for the time of the block; yields False if another living process owns it."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".owner").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def sync(directory: Path, tracking: TrackingResources) -> str | None:
    """Bring what a run's directory holds to MLflow, from where the last sync stopped.

    Stages' runs are nested in the run that `describe_run` described, if it did. Returns that run's id.

    Raises:
        OSError, mlflow.exceptions.MlflowException: MLflow did not answer; the spool is kept, call again.
    """
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    from mlflow.tracking import MlflowClient

    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # each retry, else
    directory.mkdir(parents=True, exist_ok=True)
    database = _database(tracking)
    if database is not None:
        database.parent.mkdir(parents=True, exist_ok=True)
    with (directory / ".sync").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return _sync(MlflowClient(tracking_uri=tracking.uri), directory, tracking)


def sync_pending(root: Path, tracking: TrackingResources) -> list[Path]:
    """Sync every run's directory under ``root`` that holds something new and that nobody owns.

    A described run without a status whose owner is gone was killed, and is recorded so. Returns the
    directories that were synced.

    Raises:
        What `sync` raises.
    """
    synced = []
    for directory in sorted(path for path in root.glob("*") if path.is_dir()):
        with owned(directory) as free:
            if not free:
                continue
            description = described(directory)
            if description and description["status"] is None:
                describe_run(directory, description["name"], description["tags"], "KILLED")
            if _is_pending(directory):
                sync(directory, tracking)
                synced.append(directory)
    return synced


def _is_pending(directory: Path) -> bool:
    state = _State(directory / STATE)
    if described(directory) != (state.get("described") or {}):
        return True
    spools = directory.glob("*.jsonl")
    return any(True for spool in spools for _ in _events(spool, state.get(f"{spool.stem}.offset") or 0))


def _sync(client: Any, directory: Path, tracking: TrackingResources) -> str | None:
    from mlflow.entities import RunTag

    state = _State(directory / STATE)
    if state.get("uri") not in (None, tracking.uri):  # ids hold on one server only; runs are found by key
        state.content = {"key": state.get("key")}
    experiment = state.get("experiment") or _experiment(client, tracking)
    state.put(experiment=experiment, uri=tracking.uri, key=state.get("key") or uuid.uuid4().hex)
    description = described(directory)
    parent = state.get("run")
    if description and parent is None:
        parent = _create_run(client, experiment, description["name"], f"{state.get('key')}", {}, None)
        state.put(run=parent)
    for spool in sorted(directory.glob("*.jsonl")):
        _sync_spool(client, spool, experiment, state)
    before = state.get("described") or {}
    if parent is not None and description != before:
        client.log_batch(parent, tags=[RunTag(name, value) for name, value in description["tags"].items()])
        if description["status"] is not None:
            _end_open_stages(client, state)
            client.set_terminated(parent, description["status"])
        elif before.get("status") is not None:
            client.update_run(parent, status="RUNNING")
        state.put(described=description)
    return parent


def _sync_or_say_why_not(directory: Path, tracking: TrackingResources) -> None:
    from mlflow.exceptions import MlflowException

    try:
        sync(directory, tracking)
    except (OSError, MlflowException) as error:
        log.warning("MLflow at %s did not take the run (%s); it stays in %s", tracking.uri, error, directory)


def _sync_spool(client: Any, spool: Path, experiment: str, state: _State) -> None:
    """Bring a spool's news to its stage's run; measurements that follow each other go together."""
    from mlflow.entities import Metric, Param, RunTag

    key = spool.stem
    run = state.get(f"{key}.run")
    waiting: list[Metric] = []
    behind = state.get(f"{key}.offset") or 0

    def send() -> None:
        for first in range(0, len(waiting), 1000):
            client.log_batch(run, metrics=waiting[first : first + 1000])
        waiting.clear()
        state.put(**{f"{key}.offset": behind})

    for event, offset in _events(spool, behind):
        if event["event"] == "metrics":
            waiting += [
                Metric(_allowed(name), value, event["time"], event["step"])
                for name, value in event["values"].items()
            ]
            behind = offset
            continue
        send()
        match event["event"]:
            case "start" if run is None:
                parent = state.get("run")
                tags = {"mlflow.parentRunId": parent} if parent else {}
                run = _create_run(
                    client, experiment, event["stage"], f"{state.get('key')}/{key}", tags, event["time"]
                )
                state.put(**{f"{key}.run": run})
                params = [Param(_allowed(name), str(value)[:6000]) for name, value in event["params"].items()]
                for first in range(0, len(params), 100):
                    client.log_batch(run, params=params[first : first + 100])
            case "start":
                client.update_run(run, status="RUNNING")
            case "tags":
                client.log_batch(run, tags=[RunTag(name, value) for name, value in event["values"].items()])
            case "finish":
                for artifact in event["artifacts"]:
                    if Path(artifact).exists():
                        client.log_artifact(run, artifact)
                client.set_terminated(run, event["status"], end_time=event["time"])
        behind = offset
        state.put(**{f"{key}.offset": behind, f"{key}.ended": event["event"] == "finish"})
    send()


def _end_open_stages(client: Any, state: _State) -> None:
    """A stage that was killed could not say that it ended; the pipeline's end says it."""
    for entry, ended in list(state.content.items()):
        key, _, kind = entry.rpartition(".")
        if kind == "ended" and not ended:
            client.set_terminated(state.get(f"{key}.run"), "KILLED")
            state.put(**{entry: True})


def _create_run(
    client: Any, experiment: str, name: str, key: str, tags: dict[str, str], start: int | None
) -> str:
    known = client.search_runs([experiment], f"tags.`{KEY_TAG}` = '{key}'", max_results=1)
    if known:
        return known[0].info.run_id
    return client.create_run(experiment, start, {**tags, KEY_TAG: key}, run_name=name).info.run_id


def _events(spool: Path, offset: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Whole lines of a spool after ``offset`` (bytes), each with the offset behind it.

    A last line that is still being written has no newline yet and waits for the next sync; one that a kill
    cut short is passed over.
    """
    with spool.open("rb") as lines:
        lines.seek(offset)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            try:
                event = json.loads(line)
            except ValueError:
                log.warning("%s: a line that was cut short is passed over: %s", spool, line[:80])
                continue
            yield event, offset


def _ends_a_line(spool: Any) -> bool:
    spool.seek(-1, os.SEEK_END)
    return spool.read(1) == b"\n"


def _experiment(client: Any, tracking: TrackingResources) -> str:
    known = client.get_experiment_by_name(tracking.experiment)
    if known is not None:
        return known.experiment_id
    database = _database(tracking)
    location = None if database is None else (database.parent / "mlartifacts").as_uri()
    return client.create_experiment(tracking.experiment, artifact_location=location)


def _database(tracking: TrackingResources) -> Path | None:
    """The database file on this machine, if runs are kept in one."""
    if not tracking.uri.startswith("sqlite:///"):
        return None
    return Path(tracking.uri.removeprefix("sqlite:///")).resolve()


class _State:
    """What has to be remembered, in a small file that is replaced whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def get(self, key: str) -> Any:
        return self.content.get(key)

    def put(self, **values: Any) -> None:
        if all(self.content.get(key) == value for key, value in values.items()) and self._path.exists():
            return
        self.content.update(values)
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps(self.content, indent=1), "utf-8")
        partial.replace(self._path)


def _allowed(name: str) -> str:
    """A name as MLflow takes it: a licence or a language code may hold characters that it refuses."""
    return re.sub(r"[^\w\-. :/]", "_", name)


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner
