"""Tiny real DVC projects, and one Prefect server for the whole session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent, indent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tasks.records import content_hash

os.environ.setdefault("PREFECT_LOGGING_LEVEL", "INFO")

STAGE = """
from pathlib import Path

from tasks.stage import Input, Output, StageError, StageParams, StageReport, run_as_stage, stage


class Params(StageParams):
    amount: int = 1


class Report(StageReport):
    lines: int


@stage
def {name}({arguments}, params: Params) -> Report:
    made = "".join(path.read_text() for path in [{inputs}]) + f"{name} {{params.amount}}\\n"
    with Path("executions.log").open("a") as log:
        log.write("{name}\\n")
{body}
    made_by_{name}.write_text(made)
    return Report(lines=made.count("\\n"))


if __name__ == "__main__":
    run_as_stage({name})
"""


class Project:
    """A project of toy stages: each copies its inputs and adds a line; `executions` tells which ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "toy").mkdir(parents=True)
        (folder / "toy" / "__init__.py").touch()
        (folder / "source.txt").write_text("source\n")
        (folder / ".gitignore").write_text("/made/\n/reports/\n/work/\n__pycache__/\nexecutions.log\n")
        (folder / "resources.yaml").write_text("work: work\ntracking: {uri: 'sqlite:///work/mlflow.db'}\n")
        (folder / "params.yaml").write_text("# the parameters\n")
        self._graph: dict[str, dict] = {}

    def stage(self, name: str, inputs: list[str], *, body: str = "pass", **meta: object) -> None:
        """Add a stage; an input is the name of another stage, or the path of a file."""
        paths = [f"made/{item}" if item in self._graph else item for item in inputs]
        names = [f"input_{number}" for number in range(len(inputs))]
        arguments = [f"{item}: Input" for item in names] + [f"made_by_{name}: Output"]
        code = STAGE.format(
            name=name,
            arguments=", ".join(arguments),
            inputs=", ".join(names),
            body=indent(dedent(body), "    "),
        )
        (self.folder / "toy" / f"{name}.py").write_text(code)
        self._graph[name] = {
            "cmd": f"python -m toy.{name} {' '.join([*paths, f'made/{name}'])}",
            "deps": [f"toy/{name}.py", *paths],
            "params": [name],
            "outs": [f"made/{name}"],
            "metrics": [{f"reports/{name}.json": {"cache": False}}],
            "meta": {"retry_delay_seconds": [0], **meta},
        }
        (self.folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": self._graph}, sort_keys=False))
        with (self.folder / "params.yaml").open("a") as params:
            params.write(f"{name}:\n  amount: 1 # how much\n")

    def commit(self) -> None:
        for command in (
            ["git", "init", "--quiet", "--initial-branch=main"],
            [sys.executable, "-m", "dvc", "init", "--quiet"],
            ["git", "add", "--all"],
            ["git", "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "toy"],
        ):
            subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    @property
    def executions(self) -> list[str]:
        log = self.folder / "executions.log"
        return log.read_text().split() if log.exists() else []


@pytest.fixture(scope="session")
def write_domains() -> Callable[[Path, dict[str, int]], None]:
    """Writes a layer with a hundred documents of each domain, of as many characters as are said."""

    def write(layer: Path, characters: dict[str, int]) -> None:
        rows = [
            {"text": f"{domain} {number} ".ljust(size, "x"), "source": "web", "kind": "web", "language": "en",
             "domain": domain, "license": "CC0"}
            for domain, size in characters.items()
            for number in range(100)
        ]  # fmt: skip
        (layer / "documents").mkdir(parents=True)
        table = pa.Table.from_pylist([row | {"content": content_hash(row["text"])} for row in rows])
        pq.write_table(table, layer / "documents" / "part-00000.parquet")

    return write


@pytest.fixture(scope="session")
def project_in() -> type[Project]:
    """Begins a toy project in a folder."""
    return Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty toy project in the current folder; add stages, then `commit`."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Project(folder)


@pytest.fixture
def pair(project: Project) -> Project:
    """A committed project of two stages, `second` after `first`."""
    project.stage("first", ["source.txt"])
    project.stage("second", ["first"])
    project.commit()
    return project


@pytest.fixture(scope="session")
def prefect_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with Prefect's tables, as `make install` leaves one: creating them takes ten seconds."""
    path = tmp_path_factory.mktemp("prefect") / "prefect.db"
    subprocess.run(
        [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"],
        env=os.environ | {"PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{path}"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return path


@pytest.fixture
def journey(project: Project, prefect_tables: Path) -> Project:
    """A committed project with all stages of the real dvc.yaml, each reading from where the real one does."""
    (project.folder / "work").mkdir()
    shutil.copy(prefect_tables, project.folder / "work")
    root = Path(__file__).parents[2]
    graph = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]
    makers = {output: name for name, stage in graph.items() for output in stage["outs"]}
    for name, stage in graph.items():
        inputs = [makers[path] for path in stage["deps"] if path in makers]
        project.stage(name, inputs or ["source.txt"])
    (project.folder / "prefect.yaml").write_text((root / "prefect.yaml").read_text())
    project.commit()
    return project


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    """A real Prefect server on a database of its own, once for all tests that run flows."""
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=180):
        yield


@pytest.fixture
def in_flow(prefect_server: None) -> Callable[[Callable], object]:
    """Call a function inside a flow."""
    from prefect import Flow

    def call(function: Callable) -> object:
        return Flow(function, name="test", persist_result=False)()

    return call
