"""Tracking that training never waits for: stages write a spool, a sync brings it to MLflow.

A stage appends lines of JSON to its spool file (cheap, local, survives a kill). `sync` reads the spools of a
pipeline run and writes them to MLflow: one run for the pipeline, one nested run for each stage. It may be
called at any time and as often as one likes: it remembers how far it got, so an MLflow server that was down
gets everything later, and a stage that was killed and came back goes on in the run it had.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.resources import Resources, TrackingResources

log = logging.getLogger("gristmill")

RUN_DIRECTORY_VARIABLE = "GRISTMILL_RUN_DIRECTORY"
"""Set by a flow: the spool directory of the pipeline run that the stage belongs to."""


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
        line = json.dumps({"event": event, "time": int(time.time() * 1000), **content})
        with self._path.open("a", encoding="utf-8") as spool:
            spool.write(line + "\n")


def sync(
    directory: Path,
    tracking: TrackingResources,
    pipeline: str | None,
    tags: dict[str, str] | None = None,
    status: str | None = None,
) -> str | None:
    """Bring what the spools in ``directory`` hold to MLflow, from where the last sync stopped.

    ``pipeline`` names the run that encloses the stages' runs (None: a stage that ran alone, without one);
    ``status`` ends it. Returns the enclosing run's id.

    Raises:
        OSError, mlflow.exceptions.MlflowException: MLflow did not answer; the spool is kept, call again.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
    from mlflow.tracking import MlflowClient

    directory.mkdir(parents=True, exist_ok=True)
    state = _State(directory / "mlflow.json")
    client = MlflowClient(tracking_uri=tracking.uri)
    experiment = state.get("experiment") or _experiment(client, tracking)
    state.put(experiment=experiment, uri=tracking.uri)
    if pipeline is not None and state.get("run") is None:
        run = client.create_run(experiment, run_name=pipeline, tags=tags)
        state.put(run=run.info.run_id)
    for spool in sorted(directory.glob("*.jsonl")):
        _sync_spool(client, spool, experiment, state)
    parent = state.get("run")
    if parent is not None and status is not None:
        client.set_terminated(parent, status)
    return parent


def _sync_or_say_why_not(directory: Path, tracking: TrackingResources) -> None:
    from mlflow.exceptions import MlflowException

    try:
        sync(directory, tracking, pipeline=None)
    except (OSError, MlflowException) as error:
        log.warning("MLflow at %s did not take the run (%s); it stays in %s", tracking.uri, error, directory)


def _sync_spool(client: Any, spool: Path, experiment: str, state: _State) -> None:
    from mlflow.entities import Metric, Param, RunTag

    key = spool.stem
    for event, offset in _events(spool, state.get(f"{key}.offset") or 0):
        run = state.get(f"{key}.run")
        match event["event"]:
            case "start":
                if run is None:
                    parent = state.get("run")
                    tags = {"mlflow.parentRunId": parent} if parent else {}
                    created = client.create_run(experiment, event["time"], tags, run_name=event["stage"])
                    run = created.info.run_id
                    state.put(**{f"{key}.run": run})
                    params = [Param(name, str(value)[:6000]) for name, value in event["params"].items()]
                    for first in range(0, len(params), 100):
                        client.log_batch(run, params=params[first : first + 100])
                else:
                    client.update_run(run, status="RUNNING")
            case "metrics":
                metrics = [
                    Metric(name, value, event["time"], event["step"])
                    for name, value in event["values"].items()
                ]
                for first in range(0, len(metrics), 1000):
                    client.log_batch(run, metrics=metrics[first : first + 1000])
            case "tags":
                client.log_batch(run, tags=[RunTag(name, value) for name, value in event["values"].items()])
            case "finish":
                for artifact in event["artifacts"]:
                    if Path(artifact).exists():
                        client.log_artifact(run, artifact)
                client.set_terminated(run, event["status"], end_time=event["time"])
        state.put(**{f"{key}.offset": offset})


def _events(spool: Path, offset: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Whole lines of a spool after ``offset`` (bytes), each with the offset behind it.

    A last line that is still being written has no newline yet and waits for the next sync.
    """
    with spool.open("rb") as lines:
        lines.seek(offset)
        for line in lines:
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield json.loads(line), offset


def _experiment(client: Any, tracking: TrackingResources) -> str:
    known = client.get_experiment_by_name(tracking.experiment)
    if known is not None:
        return known.experiment_id
    location = None
    if tracking.uri.startswith("sqlite:///"):
        database = Path(tracking.uri.removeprefix("sqlite:///")).resolve()
        database.parent.mkdir(parents=True, exist_ok=True)
        location = (database.parent / "mlartifacts").as_uri()
    return client.create_experiment(tracking.experiment, artifact_location=location)


class _State:
    """What a sync has to remember, in a small file that is replaced whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._content: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def get(self, key: str) -> Any:
        return self._content.get(key)

    def put(self, **values: Any) -> None:
        self._content.update(values)
        partial = self._path.with_suffix(".partial")
        partial.write_text(json.dumps(self._content, indent=1), "utf-8")
        partial.replace(self._path)


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner
