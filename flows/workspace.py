"""Where a run happens: in the project's folder, or, with changed parameters, in a git worktree of its own."""

from __future__ import annotations

import io
import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from prefect import get_run_logger
from prefect.exceptions import MissingContextError
from prefect.runtime import flow_run

from flows.checks import check_parameters
from flows.graph import Graph, inspect_graph
from flows.logs import explain_failures_briefly
from flows.project import PARAMETERS, RESOURCES, RESTORING, BadInput, find_project
from flows.run_parameters import RunParameters
from flows.shared_java import SharedJava
from flows.snapshots.restoring import finish_restore
from flows.stage import Outcome, run_stage
from flows.tracking import FLOW_RUN_TAG, Tracking, anchored, run_directory, spool_root
from flows.worktree import Worktree, commit_tags, discard, open_worktree, record, untracked
from tasks.parameters import ParameterError, load_resources, set_value
from tasks.resources import Resources
from tasks.spark import is_local
from tasks.tracking import RUN_DIRECTORY_VARIABLE


@dataclass
class Workspace:
    """A run's folder, what is to be done in it, and what became of the stages so far."""

    folder: Path
    graph: Graph
    changed: set[str]
    planned: tuple[str, ...]
    log: logging.Logger | logging.LoggerAdapter
    environment: dict[str, str] = field(default_factory=dict)
    java: SharedJava | None = None
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def has_work(self) -> bool:
        """Whether any of the planned stages may have to run."""
        return bool(self.changed.intersection(self.planned))

    def run_stages(self, *names: str) -> list[Outcome]:
        """Run the named stages in this order; those that cannot have changed start no process.

        Raises:
            StageFailed: the first that fails ends it.
        """
        moved = {outcome.stage for outcome in self.outcomes if outcome.result != "unchanged"}
        for name in names:
            if name in self.changed or self.graph.upstream[name] & moved:
                if self.java is not None and not self._spark_from(name):
                    self.java.stop()
                outcome = run_stage(
                    name, self.folder, graph=self.graph, environment=self.environment, java=self.java
                )
            else:
                outcome = Outcome(name, "unchanged")
            if outcome.result != "unchanged":
                moved.add(name)
            self.outcomes.append(outcome)
        return self.outcomes

    def _spark_from(self, name: str) -> bool:
        """Whether this planned stage or one after it runs on Spark."""
        onward = self.planned[self.planned.index(name) :] if name in self.planned else ()
        return any(self.graph.stages[stage].on_spark for stage in onward)


_current: ContextVar[Workspace | None] = ContextVar("workspace", default=None)


@contextmanager
def workspace(run: RunParameters, *stages: str) -> Iterator[Workspace]:
    """Yield where the named stages run; a flow that is called by another shares that one's.

    Without changed parameters that is the project's folder. With them it is a worktree under
    ``work/runs/<name>``; if the block succeeds, its ``dvc.lock`` and ``params.yaml`` are committed on
    ``runs/<name>``; if not, nothing is, and the folder stays to be looked at, or for the same run to go on.

    Raises:
        BadInput: before anything starts, for parameters, resources or inputs that do not fit.
    """
    enclosing = _current.get()
    if enclosing is not None:
        yield enclosing
        return
    explain_failures_briefly()
    log = _logger()
    project = find_project()
    if (project / RESTORING).exists():
        finish_restore(project)
    graph, changed = inspect_graph(project)
    graph.check_names(stages)
    name = run.name or _plain(flow_run.name or "") or time.strftime("run-%Y%m%dT%H%M%S")
    with ExitStack() as stack:
        tree = None
        if run.set:
            resources, tree = _tree(project, run, name, graph, changed.intersection(stages), log)
            try:
                graph, changed = inspect_graph(tree.folder)
                _check_inputs(tree.folder, graph, stages)
                java = _shared_java(stack, tree.folder, graph, changed.intersection(stages))
            except BaseException:
                if not tree.resumed:
                    discard(project, tree)
                raise
        else:
            java = _shared_java(stack, project, graph, changed.intersection(stages))
            resources = check_parameters(project, graph=graph, stages=changed.intersection(stages))
            _check_inputs(project, graph, stages)
        here = Workspace(tree.folder if tree else project, graph, changed, stages, log, java=java)
        token = _current.set(here)
        try:
            yield from _tracked(here, project, resources, run, name, tree)
        finally:
            _current.reset(token)


def _tracked(
    here: Workspace, project: Path, resources: Resources, run: RunParameters, name: str, tree: Worktree | None
) -> Iterator[Workspace]:
    """Yield the workspace, tracked if there is anything to do; record and sum up at the end."""
    _say_what_is_left_out(here)
    if not here.has_work:
        count = len(here.planned)
        here.log.info(
            "nothing to do: %s", f"all {count} stages are up to date" if count > 1 else "up to date"
        )
        yield here
        if tree is not None:
            _record(here, tree, run)
        return
    directory = run_directory(spool_root(project, resources), name, str(flow_run.id))
    here.environment[RUN_DIRECTORY_VARIABLE] = str(directory)
    tags = {
        "prefect.flow": str(flow_run.flow_name),
        FLOW_RUN_TAG: str(flow_run.id),
        "changed_parameters": "\n".join(run.set),
        **commit_tags(here.folder),
    }
    with Tracking(directory, anchored(resources.tracking, project), tags, here.log) as tracking:
        try:
            yield here
            if tree is not None:
                _record(here, tree, run)
        finally:
            tracking.tags |= commit_tags(here.folder) | _snapshot_tag(here.folder)
            tracking.tags |= {f"stage.{outcome.stage}": outcome.result for outcome in here.outcomes}
            here.log.info("%s", summary(here))


def summary(here: Workspace) -> str:
    """A table of what became of each stage, and where the report is."""
    rows = [(outcome.stage, outcome.result, f"{outcome.seconds:.1f} s") for outcome in here.outcomes]
    left = [name for name in here.planned if name not in {outcome.stage for outcome in here.outcomes}]
    rows += [(name, "not done", "") for name in left]
    width = max((len(row[0]) for row in rows), default=0)
    table = [f"  {stage:<{width}}  {what:<9}  {seconds:>9}".rstrip() for stage, what, seconds in rows]
    total = sum(outcome.seconds for outcome in here.outcomes)
    lines = [f"{len(here.outcomes)} of {len(here.planned)} stages done in {total:.1f} s", *table]
    report = here.folder / "reports" / "index.html"
    if report.exists():
        lines.append(f"report: {report}")
    return "\n".join(lines)


def with_changes(params: Path, assignments: list[str]) -> str:
    """The content of a ``params.yaml`` with some values changed and its comments kept.

    Raises:
        BadInput: if it cannot be read, or an assignment is no ``section.key=value``.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    try:
        content = yaml.load(params.read_text("utf-8"))
        for assignment in assignments:
            set_value(content, assignment)
    except FileNotFoundError:
        raise BadInput(f"{params} does not exist") from None
    except YAMLError as error:
        raise BadInput(f"{params} is not valid YAML: {error}") from None
    except ParameterError as error:
        raise BadInput(str(error)) from None
    out = io.StringIO()
    yaml.dump(content, out)
    return out.getvalue()


def _tree(
    project: Path,
    run: RunParameters,
    name: str,
    graph: Graph,
    changed: set[str],
    log: logging.Logger | logging.LoggerAdapter,
) -> tuple[Resources, Worktree]:
    """Check the changed parameters, then open the run's folder."""
    parameters = with_changes(project / PARAMETERS, run.set)
    touched = {assignment.split(".")[0].strip() for assignment in run.set}
    proposed = project / f".{PARAMETERS}.{name}"
    proposed.write_text(parameters, "utf-8")
    try:
        stages = [stage for stage in graph.order if stage in changed | touched]
        resources = check_parameters(project, graph=graph, params=proposed, stages=stages)
    except BadInput as error:
        raise BadInput(str(error).replace(str(proposed), f"{PARAMETERS} with {', '.join(run.set)}")) from None
    finally:
        proposed.unlink()
    tree = open_worktree(project, name, parameters, graph, project / resources.work, resources.kept)
    log.info("%s in %s, branch %s", "going on" if tree.resumed else "running", tree.folder, tree.branch)
    if not tree.resumed and (files := untracked(project)):
        more = f" and {len(files) - 10} more" if len(files) > 10 else ""
        log.warning("git does not track, and the run does not have: %s%s", ", ".join(files[:10]), more)
    return resources, tree


def _shared_java(stack: ExitStack, folder: Path, graph: Graph, changed: set[str]) -> SharedJava | None:
    """Start a Java for the stages on Spark, ended with the stack; None where none may run here."""
    try:
        resources = load_resources(folder / RESOURCES)
    except ParameterError:
        return None  # the check of parameters says it better
    may_run = graph.with_descendants(changed)
    if not is_local(resources) or not any(graph.stages[name].on_spark for name in may_run):
        return None
    java = SharedJava(folder, folder / resources.work / "logs" / "java.log")
    stack.callback(java.stop)
    java.start()
    return java


def _record(here: Workspace, tree: Worktree, run: RunParameters) -> None:
    commit = record(tree, run.set)
    here.log.info("recorded on branch %s (%s)", tree.branch, commit[:10])


def _check_inputs(folder: Path, graph: Graph, stages: tuple[str, ...]) -> None:
    complaints = graph.missing_inputs(folder, stages)
    if complaints:
        raise BadInput("\n".join(complaints))


def _say_what_is_left_out(here: Workspace) -> None:
    """A flow that covers a part of the graph builds on the rest as it is."""
    above: set[str] = set()
    for name in reversed(here.graph.order):
        if name in here.planned or name in above:
            above |= here.graph.upstream[name]
    stale = [name for name in here.graph.order if name in (above - set(here.planned)) & here.changed]
    if stale:
        here.log.warning("not up to date, and not part of this flow: %s", ", ".join(stale))


def _plain(name: str) -> str:
    """A flow run's name, which a person may have typed, as a name that files and branches can bear."""
    return "-".join(re.findall(r"[A-Za-z0-9]+", name))[:100]


def _snapshot_tag(folder: Path) -> dict[str, str]:
    manifest = folder / "data" / "snapshot" / "manifest.json"
    if not manifest.is_file():
        return {}
    return {"snapshot": str(json.loads(manifest.read_text("utf-8"))["snapshot"])}


def _logger() -> logging.Logger | logging.LoggerAdapter:
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger("gristmill")
