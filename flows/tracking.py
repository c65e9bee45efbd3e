"""What a flow tells MLflow, in a thread beside it: the stages' spools, what enclosed them, how it ended."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from flows.project import BadInput
from tasks.resources import Resources, TrackingResources
from tasks.tracking import describe_run, described, owned, sync, sync_pending

FIRST_SYNC_SECONDS = 4.0
"""The first stage starts without competition for the processor; importing MLflow takes as long."""

SYNC_SECONDS = 5.0

FLOW_RUN_TAG = "prefect.flow_run_id"


def spool_root(project: Path, resources: Resources) -> Path:
    """Where the directories of all runs lie; the project of record holds those of its worktrees too."""
    return project / resources.work / "tracking"


def anchored(tracking: TrackingResources, project: Path) -> TrackingResources:
    """The same place with a relative database file resolved against the project's folder."""
    path = tracking.uri.removeprefix("sqlite:///")
    if path == tracking.uri or Path(path).is_absolute():
        return tracking
    return tracking.model_copy(update={"uri": f"sqlite:///{project / path}"})


def run_directory(root: Path, name: str, flow_run: str) -> Path:
    """The spool directory of a run; one that is retried goes on in its own, a new one never in another's."""
    attempt = 1
    while True:
        directory = root / (name if attempt == 1 else f"{name}-{attempt}")
        known = described(directory)
        if not known or known["tags"].get(FLOW_RUN_TAG) == flow_run:
            return directory
        attempt += 1


class Tracking:
    """Keeps MLflow up to date while a run goes on; a context manager whose end waits for the last sync.

    MLflow that does not answer costs a warning: what was recorded stays in the run's directory and follows
    with the next run.

    Raises (when entered):
        BadInput: if another living process runs under this name.
    """

    def __init__(
        self,
        directory: Path,
        tracking: TrackingResources,
        tags: dict[str, str],
        log: logging.Logger | logging.LoggerAdapter,
    ) -> None:
        self.directory = directory
        self.tags = tags
        self._tracking = tracking
        self._log = log
        self._ended = threading.Event()
        self._warned = False
        self._thread = threading.Thread(target=self._follow, name="tracking", daemon=True)
        self._resources = ExitStack()

    def __enter__(self) -> Tracking:
        if not self._resources.enter_context(owned(self.directory)):
            self._resources.close()
            raise BadInput(f"a run named {self.directory.name} is going on; choose another name")
        describe_run(self.directory, self.directory.name, self.tags)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended_by = "FINISHED" if kind is None else "FAILED"
        status = "KILLED" if kind is not None and not issubclass(kind, Exception) else ended_by
        describe_run(self.directory, self.directory.name, self.tags, status)
        self._ended.set()
        self._thread.join()
        self._resources.close()

    def _follow(self) -> None:
        self._ended.wait(FIRST_SYNC_SECONDS)
        pending = True
        while True:
            last = self._ended.is_set()
            if self._bring(pending):
                pending = False
            if last:
                return
            self._ended.wait(SYNC_SECONDS)

    def _bring(self, pending: bool) -> bool:
        try:
            sync(self.directory, self._tracking)
            if pending:
                sync_pending(self.directory.parent, self._tracking)
        except Exception as error:  # whatever is wrong with tracking must not end a run: it is said, once
            if not self._warned:
                self._warned = True
                self._log.warning(
                    "MLflow at %s (tracking.uri in resources.yaml) took nothing (%s: %s); the run goes on, "
                    "what it records waits in %s and follows with the next run",
                    self._tracking.uri, type(error).__name__, _short(error), self.directory,
                )  # fmt: skip
            return False
        return True


def _short(error: Exception) -> str:
    first = (str(error).splitlines() or [""])[0]
    return first if len(first) <= 200 else f"{first[:200]}…"
