"""The graph as DVC has it: stages, what each reads and writes, how a flow runs it, and which changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from flows.project import BadInput
from tasks.parameters import ParameterError, nearest, read_yaml, validate

if TYPE_CHECKING:
    from dvc.stage import PipelineStage


SPARK_CODE = "tasks/spark.py"
"""A stage whose code includes this file runs on Spark."""


class Policy(BaseModel):
    """How a flow runs a stage: the stage's ``meta:`` in ``dvc.yaml``, which DVC does not hash."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    pool: str = Field("default", description="the kind of machine; a tag of the task, so it can be limited")
    retries: int = Field(0, ge=0, le=100, description="further attempts after a failure that may pass")
    retry_delay_seconds: list[float] = Field([2, 10, 60], min_length=1, description="the last one repeats")
    timeout_seconds: float | None = Field(None, gt=0, description="of one attempt")


@dataclass(frozen=True)
class Stage:
    """A node of the graph; paths are relative to the project's folder."""

    name: str
    command: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    unversioned: tuple[str, ...]
    """Those outputs of which DVC keeps no copy (``cache: false``)."""
    sections: tuple[str, ...]
    policy: Policy

    @property
    def on_spark(self) -> bool:
        """Whether it runs on Spark."""
        return SPARK_CODE in self.inputs


@dataclass(frozen=True)
class Graph:
    """All stages, and for each the stages that make what it reads."""

    stages: dict[str, Stage]
    upstream: dict[str, frozenset[str]]

    @cached_property
    def order(self) -> list[str]:
        """Every stage after those that it reads from; otherwise in the order of ``dvc.yaml``."""
        placed: list[str] = []
        waiting = list(self.stages)
        while waiting:
            ready = next(name for name in waiting if self.upstream[name] <= set(placed))
            placed.append(ready)
            waiting.remove(ready)
        return placed

    def with_descendants(self, names: Iterable[str]) -> set[str]:
        """The named stages and all that read, directly or not, what they make."""
        reached = set(names)
        for name in self.order:
            if self.upstream[name] & reached:
                reached.add(name)
        return reached

    def missing_inputs(self, project: Path, names: Iterable[str]) -> list[str]:
        """Complaints about inputs that do not exist and that no stage among ``names`` will make."""
        names = list(names)
        makers = {output: stage.name for stage in self.stages.values() for output in stage.outputs}
        complaints = []
        for name in names:
            for path in self.stages[name].inputs:
                if (project / path).exists():
                    continue
                maker = next((makers[out] for out in makers if _overlap(out, path)), None)
                if maker is None:
                    complaints.append(f"stage {name} reads {project / path}, which does not exist (dvc.yaml)")
                elif maker not in names:
                    complaints.append(
                        f"stage {name} reads {path}, which stage {maker} makes and has not made yet: "
                        "run the whole journey first (`gristmill run`)"
                    )
        return complaints

    def check_names(self, names: Iterable[str]) -> None:
        """Raise `BadInput` for a name that is no stage."""
        for name in names:
            if name not in self.stages:
                raise BadInput(f"dvc.yaml has no stage `{name}`; {nearest(name, list(self.stages))}")


def read_graph(project: Path) -> Graph:
    """Read the graph of the project in a folder.

    Raises:
        BadInput: if DVC cannot read it, or a stage's ``meta:`` does not fit `Policy`.
    """
    return inspect_graph(project, changes=False)[0]


def inspect_graph(project: Path, *, changes: bool = True) -> tuple[Graph, set[str]]:
    """Read the graph and ask DVC which stages' own command, inputs, parameters or outputs changed.

    A stage that is not named may still have to run: because one that it reads from will.

    Raises:
        BadInput: as `read_graph`.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo, lock_repo
    from dvc.stage import PipelineStage

    try:
        with Repo(str(project), _wait_for_lock=True) as repo, lock_repo(repo):
            found = [
                stage  # a .dvc file is none, and the stages of a nested dvc.yaml are not the project's
                for stage in repo.index.stages
                if isinstance(stage, PipelineStage) and Path(stage.path) == project / "dvc.yaml"
            ]
            graph = _graph(project, found)
            changed = {str(stage.name) for stage in found if changes and stage.status()}
    except DvcException as error:
        raise BadInput(f"DVC cannot read {project / 'dvc.yaml'}: {error}") from error
    return graph, changed


def _graph(project: Path, pipeline: list[PipelineStage]) -> Graph:
    from dvc.dependency import ParamsDependency

    stages: dict[str, Stage] = {}
    for found in pipeline:
        params = [dep for dep in found.deps if isinstance(dep, ParamsDependency)]
        stages[str(found.name)] = Stage(
            name=str(found.name),
            command=found.cmd if isinstance(found.cmd, str) else "\n".join(found.cmd or []),
            inputs=tuple(_path(dep, project) for dep in found.deps if not isinstance(dep, ParamsDependency)),
            outputs=tuple(_path(out, project) for out in found.outs),
            unversioned=tuple(_path(out, project) for out in found.outs if not out.use_cache),
            sections=tuple(str(key) for dep in params for key in dep.params),
            policy=_policy(found.meta, f"{project / 'dvc.yaml'}: stages.{found.name}.meta"),
        )
    written = _declared_order(project)
    stages = {name: stages[name] for name in sorted(stages, key=lambda name: written.index(name))}
    upstream = {
        stage.name: frozenset(
            other.name
            for other in stages.values()
            if other is not stage and any(_overlap(o, i) for o in other.outputs for i in stage.inputs)
        )
        for stage in stages.values()
    }
    return Graph(stages, upstream)


def _declared_order(project: Path) -> list[str]:
    return list(read_yaml(project / "dvc.yaml").get("stages") or {})


def _policy(meta: Any, where: str) -> Policy:
    try:
        return validate(meta or {}, Policy, where)
    except ParameterError as error:
        raise BadInput(str(error)) from None


def _path(item: Any, project: Path) -> str:
    path = Path(item.fs_path)
    return path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)


def _overlap(one: str, other: str) -> bool:
    """Whether two paths are the same, or one lies inside the other."""
    return Path(one) == Path(other) or Path(one) in Path(other).parents or Path(other) in Path(one).parents
