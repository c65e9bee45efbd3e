"""The Java that the Spark stages of a run share (tasks/java_host.py), started ahead and ended early."""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from flows.process_group import OutOfTime, lines, process_group
from flows.project import program_environment

log = logging.getLogger("gristmill")

START_SECONDS = 60.0

STOP_SECONDS = 60.0
"""The first Java of an installation writes its class archive when it ends."""


class SharedJava:
    """Started by `start`, which does not wait; `environment` waits, and starts anew after a `stop`.

    A Java that does not start is no failure: every stage then starts its own, and says what is wrong.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder, self._log = folder, log
        self._running = ExitStack()
        self._variables: dict[str, str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it beside whatever else goes on."""
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._process = self._running.enter_context(
            process_group(
                [sys.executable, "-m", "tasks.java_host"],
                cwd=self._folder,
                env=program_environment(),
                errors=self._running.enter_context(self._log.open("ab")),
                grace=STOP_SECONDS,
            )
        )

    def environment(self) -> dict[str, str]:
        """What a stage needs to find it; empty if there is none."""
        if self._variables and not _listens(int(self._variables["PYSPARK_GATEWAY_PORT"])):
            self.stop()
        if self._variables == {}:
            return {}  # it did not start; every stage starts its own
        self.start()
        assert self._process is not None
        if self._variables is None:
            try:
                self._variables = json.loads(next(lines(self._process, START_SECONDS), ""))
            except (OutOfTime, ValueError):
                log.warning("no shared Java for the stages on Spark: it did not start, see %s", self._log)
                self._running.close()
                self._variables = {}
        return self._variables or {}

    def stop(self) -> None:
        """End it, and whatever a stage left running in it."""
        self._running.close()
        self._process = self._variables = None


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
