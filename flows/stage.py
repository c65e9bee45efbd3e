"""run_stage: the one place where Prefect meets DVC."""

from __future__ import annotations

import logging
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from prefect import Task, get_run_logger
from prefect.cache_policies import NO_CACHE

from flows.graph import Graph, read_graph
from flows.process_group import OutOfTime, lines, process_group
from flows.project import find_project, module_command, program_environment
from flows.shared_java import SharedJava

BAD_INPUT_STATUS = 2
"""With this a stage says that it will fail again on the same input (see tasks/stage.py)."""

Result = Literal["ran", "restored", "unchanged"]


@dataclass(frozen=True)
class Outcome:
    """What became of a stage: it ran, DVC restored an earlier result from its cache, or nothing changed."""

    stage: str
    result: Result
    seconds: float = 0.0


class StageFailed(Exception):
    """A stage failed; ``message`` is what it said last, ``final`` that another attempt would not help."""

    def __init__(self, stage: str, message: str, final: bool = False) -> None:
        super().__init__(stage, message, final)
        self.stage, self.message, self.final = stage, message, final

    def __str__(self) -> str:
        return f"stage {self.stage} failed: {self.message}"

    def __repr__(self) -> str:
        return f"{self.stage}: {self.message}"


def run_stage(
    name: str,
    folder: Path | None = None,
    *,
    graph: Graph | None = None,
    environment: Mapping[str, str] | None = None,
    java: SharedJava | None = None,
) -> Outcome:
    """Run one stage of the project in ``folder`` as a task of the flow that calls this.

    Retries, delays, timeout and pool come from the stage's ``meta:`` in ``dvc.yaml``. Whatever ends the task
    (success, failure, timeout, cancellation) ends every process that it started. ``java`` is given to a stage
    that runs on Spark, and ends with an attempt that fails: nothing of that is at work when the next begins.

    Raises:
        BadInput: if there is no such stage.
        StageFailed: if it failed and its attempts are used up; at once where the stage says that its input
            is bad.
    """
    folder = folder or find_project()
    graph = graph or read_graph(folder)
    graph.check_names([name])
    policy = graph.stages[name].policy
    task = Task(
        _reproduce,
        name=name,
        task_run_name=name,
        tags=[policy.pool],
        cache_policy=NO_CACHE,  # DVC decides what is unchanged
        retries=policy.retries,
        retry_delay_seconds=policy.retry_delay_seconds,
        retry_condition_fn=_may_pass,
        persist_result=False,
    )
    shared = java if graph.stages[name].on_spark else None
    return task(name, str(folder), policy.timeout_seconds, dict(environment or {}), shared)


def _reproduce(
    name: str, folder: str, timeout: float | None, environment: dict[str, str], java: SharedJava | None
) -> Outcome:
    """Let DVC bring one stage up to date, and pass on what it says."""
    if java is None:
        return _attempt(name, folder, timeout, environment)
    try:
        return _attempt(name, folder, timeout, environment | java.environment())
    except BaseException:
        java.stop()
        raise


def _attempt(name: str, folder: str, timeout: float | None, environment: dict[str, str]) -> Outcome:
    log = get_run_logger()
    started = time.monotonic()
    said = _Said(name)
    command = module_command("dvc", "--wait-for-lock", "repro", "--single-item", name)
    env = program_environment() | environment
    with process_group(command, cwd=Path(folder), env=env) as process:
        try:
            for line in lines(process, timeout):
                shown = said.take(line)
                if shown is not None:
                    log.log(logging.ERROR if shown.startswith("error: ") else logging.INFO, "%s", shown)
        except OutOfTime as error:
            raise StageFailed(name, f"{error} (meta.timeout_seconds in dvc.yaml)") from None
        if process.returncode != 0:
            raise StageFailed(name, said.reason(process.returncode), final=said.status == BAD_INPUT_STATUS)
    return Outcome(name, said.result, round(time.monotonic() - started, 1))


def _may_pass(task: Any, run: Any, state: Any) -> bool:
    """Whether another attempt may succeed: a bad input stays bad."""
    error = state.result(raise_on_failure=False)
    return not (isinstance(error, StageFailed) and error.final)


class _Said:
    """What is known of a stage from the lines of `dvc repro`."""

    CHATTER = re.compile(
        r"(> |Updating lock file|Generating lock file|Use `dvc push`|To track the changes with git|"
        r"To enable auto staging|\tgit add |\tdvc config core\.autostage|Data and pipelines are up to date|"
        r"Verifying data sources)"
    )
    CLOCK = re.compile(r"^\d\d:\d\d:\d\d (gristmill )?")
    FAILED = re.compile(r"^ERROR: failed to reproduce '.*?': (.*)")
    STATUS = re.compile(r"exited with (-?\d+)$")

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._last: list[str] = []
        self._own: list[str] | None = None  # the stage's own message, from its line `error: …` on
        self._dvc = ""
        self.result: Result = "unchanged"
        self.status: int | None = None

    def take(self, line: str) -> str | None:
        """Note a line; returns how it is shown, or None if it says nothing to a person."""
        if line.startswith("Running stage "):
            self.result = "ran"
            return None
        if "is cached - skipping run" in line:
            self.result = "restored"
            return "restored from the cache: the same inputs, code and parameters ran before"
        if line.endswith("didn't change, skipping"):
            return None
        if found := self.FAILED.match(line):
            self._dvc = found[1]
            if status := self.STATUS.search(line):
                self.status = int(status[1])
            return None
        if not line.strip() or self.CHATTER.match(line):
            return None
        line = self.CLOCK.sub("", line)
        if line.startswith("error: "):
            self._own = []
        if self._own is not None:
            self._own.append(line)
        self._last = [*self._last[-7:], line]
        return line

    def reason(self, dvc_status: int) -> str:
        """Why it failed, as well as it can be told from what was said."""
        if self._own and self.status is not None and self.status > 0:
            message = "\n".join(self._own).removeprefix("error: ")
            return re.sub(rf"^{re.escape(self._stage)}( failed)?: ", "", message)
        last = "\n".join(self._last)
        number = -self.status if self.status is not None and self.status < 0 else (self.status or 0) - 128
        if self.status is not None and number in {s.value for s in signal.Signals}:
            hint = " (out of memory, or stopped from outside)" if number == signal.SIGKILL else ""
            return "\n".join(filter(None, [f"killed by {signal.Signals(number).name}{hint}", last]))
        if self.status is None and dvc_status < 0:
            return f"dvc was killed by signal {-dvc_status}"
        return "\n".join(filter(None, [self._dvc or f"dvc exited with {dvc_status}", last]))
