"""The flow and the command on a graph whose stage `mix` has the real parameters, plan and report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows import rebalance
from flows.graph import read_graph
from flows.project import BadInput, program_environment
from flows.rebalance_parameters import RebalanceParameters

ROOT = Path(__file__).parents[2]

COMMON = """
import json
import shutil
from pathlib import Path

from tasks.stage import Input, Output, StageParams, StageReport, run_as_stage, stage


def ran(name):
    with Path("executions.log").open("a") as log:
        log.write(name + "\\n")


class Params(StageParams):
    amount: int = 1


class Report(StageReport):
    amount: int
"""

DEDUP = """
@stage
def dedup(source: Input, unique: Output, params: Params) -> Report:
    ran("dedup")
    shutil.copytree(source, unique)
    return Report(amount=1)
"""

MIX = """
from tasks.corpus.mix import MixParams, MixReport, is_held_out, planned_groups
from tasks.corpus.mixture.comparison import expected
from tasks.corpus.mixture.sizes import unique_sizes


@stage
def mix(unique: Input, mixture: Output, params: MixParams) -> MixReport:
    ran("mix")
    sizes = unique_sizes(unique, params.columns, is_held_out(params))
    groups = expected(planned_groups(sizes, params))
    mixture.mkdir()
    (mixture / "groups.json").write_text(json.dumps([group.model_dump() for group in groups]))
    return MixReport(
        records_in=0, kept=0, train_documents=1, validation_documents=0,
        train_bytes=sum(group.bytes for group in groups),
        budget_bytes=round(params.budget_bytes or sum(sizes.values())),
        grouped_by=params.columns, groups=groups, train_characters_by_source={},
    )
"""

PROFILE = """
@stage
def profile(mixture: Input, made: Output, params: Params) -> Report:
    ran("profile")
    made.write_text("profile")
    return Report(amount=1)
"""

SNAPSHOT = """
import hashlib

from tasks.corpus.snapshot import Manifest, SnapshotParams


@stage
def snapshot(mixture: Input, snapshot: Output, params: SnapshotParams) -> Report:
    ran("snapshot")
    snapshot.mkdir()
    content = (mixture / "groups.json").read_text()
    name = hashlib.sha256((content + str(params.parent)).encode()).hexdigest()
    made = Manifest(snapshot=name, parent=params.parent, note="", files=[], columns={}, lineage=[], counts={})
    (snapshot / "manifest.json").write_text(made.model_dump_json())
    return Report(amount=1)
"""

ENCODE = """
@stage
def encode(snapshot: Input, tokens: Output, params: Params) -> Report:
    ran("encode")
    tokens.write_text((snapshot / "manifest.json").read_text())
    return Report(amount=1)
"""

STAGES = {
    "dedup": (DEDUP, "source", "data/unique"),
    "mix": (MIX, "data/unique", "data/mixture"),
    "profile": (PROFILE, "data/mixture", "data/profile.json"),
    "snapshot": (SNAPSHOT, "data/mixture", "data/snapshot"),
    "encode": (ENCODE, "data/snapshot", "data/tokens"),
}


@pytest.fixture(scope="module")
def template(
    tmp_path_factory: pytest.TempPathFactory,
    project_in: Callable[[Path], Any],
    write_domains: Callable[[Path, dict[str, int]], None],
) -> Path:
    """A committed project from dedup to encode, run once: 90 kB of general text, 10 kB of law."""
    folder = tmp_path_factory.mktemp("rebalance") / "project"
    project = project_in(folder)
    write_domains(folder / "source", {"general": 900, "law": 100})
    graph = {}
    for name, (code, path, made) in STAGES.items():
        module = COMMON + code + f'\n\nif __name__ == "__main__":\n    run_as_stage({name})\n'
        (folder / "toy" / f"{name}.py").write_text(module)
        graph[name] = {
            "cmd": f"python -m toy.{name} {path} {made}",
            "deps": [f"toy/{name}.py", path],
            "params": [name],
            "outs": [made],
            "metrics": [{f"reports/{name}.json": {"cache": False}}],
            "meta": {"retry_delay_seconds": [0]},
        }
    (folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": graph}, sort_keys=False))
    (folder / "params.yaml").write_text(
        "mix:\n  validation_share: 0.0 # nothing held out\nsnapshot:\n  parent: null\n"
        "dedup: {}\nprofile: {}\nencode: {}\n"
    )
    (folder / ".gitignore").write_text("/data/\n/reports/\n/work/\n__pycache__/\nexecutions.log\n")
    project.commit()
    done = subprocess.run(
        [sys.executable, "-m", "dvc", "repro", "--quiet"],
        cwd=folder, env=program_environment(), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert project.executions == [*STAGES]
    return folder


@pytest.fixture
def made(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it in the current folder."""
    folder = tmp_path / "project"
    shutil.copytree(template, folder, symlinks=True)
    git(folder, "update-index", "-q", "--refresh")  # copies have other times than git knows
    monkeypatch.chdir(folder)
    return folder


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "data" / "snapshot" / "manifest.json").read_text())


def artifact() -> Any:
    """The newest table of the flow."""
    from prefect.artifacts import Artifact

    found = Artifact.get(key=rebalance.ARTIFACT)
    assert found is not None
    return found


def test_the_flow_is_the_corpus_from_mix_on_in_an_order_that_the_graph_allows() -> None:
    graph = read_graph(ROOT)
    for position, name in enumerate(rebalance.STAGES):
        above = graph.upstream[name] & {*graph.with_descendants(["mix"])}
        assert above <= {*rebalance.STAGES[:position]}
    assert {*rebalance.STAGES} == graph.with_descendants(["mix"]) & {"mix", "profile", "snapshot", "encode"}


def test_a_rebalance_runs_what_follows_dedup_on_a_branch_and_continues_the_snapshot(
    made, prefect_server: None
) -> None:
    before = (made / "params.yaml").read_text()
    asked = RebalanceParameters(by="domain", weights={"law": 0.3}, name="more-law")
    outcomes = rebalance.rebalance(asked)
    assert [(outcome.stage, outcome.result) for outcome in outcomes] == [
        ("mix", "ran"), ("profile", "ran"), ("snapshot", "ran"), ("encode", "ran"),
    ]  # fmt: skip
    run = made / "work" / "runs" / "more-law"
    assert (run / "executions.log").read_text().split() == ["mix", "profile", "snapshot", "encode"]
    assert manifest(run)["parent"] == manifest(made)["snapshot"]
    assert (made / "params.yaml").read_text() == before
    recorded = yaml.safe_load(git(made, "show", "runs/more-law:params.yaml"))
    assert recorded["mix"]["levels"] == [{"by": "domain", "weights": {"law": 0.3}}]
    assert "# nothing held out" in git(made, "show", "runs/more-law:params.yaml")


def test_a_rebalance_ends_with_a_table_of_asked_and_given(made, prefect_server: None) -> None:
    rebalance.rebalance(RebalanceParameters(by="domain", weights={"law": 0.6}, name="capped"))
    found = artifact()
    general, law = json.loads(found.data)
    assert (law["domain"], law["asked"], law["given"], law["epochs"]) == ("law", "60.0 %", "40.0 %", "4.00")
    assert law["because"] == "it would be seen 6.0 times, and maximum_epochs is 4"
    assert general["because"] == "takes over what others cannot give"
    run = made / "work" / "runs" / "capped"
    assert f"snapshot {manifest(run)['snapshot'][:12]}" in found.description
    assert f"continues {manifest(made)['snapshot'][:12]}" in found.description


@pytest.mark.slow
def test_the_shares_of_an_earlier_run_are_taken_by_its_name(made, prefect_server: None) -> None:
    rebalance.rebalance(RebalanceParameters(by="domain", weights={"law": 0.3}, name="first"))
    rebalance.rebalance(RebalanceParameters(by="domain", like="first", tokens=50000, name="second"))
    levels = yaml.safe_load(git(made, "show", "runs/second:params.yaml"))["mix"]["levels"]
    assert levels[0]["weights"] == pytest.approx({"law": 0.3, "general": 0.7})


def test_what_the_form_is_refused_for_makes_no_folder_and_no_branch(made, prefect_server: None) -> None:
    with pytest.raises(BadInput, match="no documents of domain `lwa`; there are general, law"):
        rebalance.rebalance(RebalanceParameters(by="domain", weights={"lwa": 0.3}, name="typo"))
    assert git(made, "branch", "--list", "runs/*") == ""
    assert not (made / "work" / "runs").exists()


def test_the_form_of_the_deployment_takes_what_the_flow_takes() -> None:
    from prefect.utilities.callables import parameter_schema

    schema = parameter_schema(rebalance.rebalance)
    fields = schema.definitions["RebalanceParameters"]["properties"]
    assert list(fields) == ["by", "weights", "temperature", "maximum_epochs", "tokens", "like", "name"]
    assert all(field["title"] and field["description"] for field in fields.values())
    assert schema.required == ["asked"]


@pytest.mark.slow
def test_the_command_runs_the_flow(made: Path, prefect_tables: Path) -> None:
    (made / "work").mkdir(exist_ok=True)
    (made / "work" / "prefect.db").write_bytes(prefect_tables.read_bytes())
    command = ["rebalance", "--by", "domain", "--weight", "law=0.3", "--name", "typed"]
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli", *command], cwd=made, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "4 of 4 stages done" in done.stderr
    row = next(line.split() for line in done.stderr.splitlines() if line.startswith("law "))
    assert row == ["law", "–", "30.0", "%", "30.0", "%", "3.00", "10", "kB"]
    assert git(made, "log", "-1", "--format=%s", "runs/typed") == "Run typed"
