"""A small project with the real layout of data/, the real stage `snapshot`, git and DVC."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from flows import cli
from tasks.records import record_id

LAYERS = '''
"""Documents from lines, and the layers after them; the arguments say which."""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tasks.corpus.encoding.tables import documents_name, write_documents
from tasks.records import content_hash, record_id

PARAMS = yaml.safe_load(Path("params.yaml").read_text())
LEDGER = pa.schema([*((name, pa.string()) for name in ("id", "stage", "rule")), ("value", pa.float64()),
                    ("threshold", pa.float64()), ("verdict", pa.string()), ("detail", pa.string())])


def write(layer, rows, entries=()):
    for part in ("documents", "ledger"):
        Path(layer, part).mkdir(parents=True)
    half = (len(rows) + 1) // 2
    for number, some in enumerate([rows[:half], rows[half:]]):
        path = f"{layer}/documents/part-{number:05d}.parquet"
        pq.write_table(pa.Table.from_pylist(some, schema(rows)), path)
    pq.write_table(pa.Table.from_pylist(list(entries), LEDGER), f"{layer}/ledger/part-00000.parquet")
    lineage = [{"stage": "collect", "parameters": PARAMS["collect"]}]
    Path(layer, "lineage.json").write_text(json.dumps(lineage))


def schema(rows):
    kinds = {"copy": pa.int64(), "language_score": pa.float64(), "meta": pa.map_(pa.string(), pa.string()),
             "signals": pa.map_(pa.string(), pa.float64())}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in rows[0]])


def read(layer):
    return pq.read_table(f"{layer}/documents").to_pylist()


def collect():
    lines = Path("source.txt").read_text().splitlines()[: PARAMS["collect"]["lines"]]
    write("data/raw", [
        {"id": record_id("docs", f"source.txt:{n}", line), "content": content_hash(line), "text": line,
         "source": "docs", "origin": f"source.txt:{n}", "kind": "book", "domain": "general",
         "language": "en" if n % 2 else "de", "language_score": 1.0, "signals": {}, "license": "CC0",
         "collected_at": "2026-01-01", "meta": {}}
        for n, line in enumerate(lines)
    ])
    return len(lines)


def refine():
    raw = read("data/raw")
    listed = Path("forgotten.jsonl").read_text().splitlines()
    forgotten = {json.loads(line)["id"] for line in listed if line}
    upper = PARAMS["refine"]["upper"]
    write("data/scored", raw)
    kept = [row | {"text": row["text"].upper(), "content": content_hash(row["text"] + "!")} if upper else row
            for row in raw if row["id"] not in forgotten]
    write("data/clean", kept, [{"id": name, "stage": "clean", "rule": "forgotten", "verdict": "removed"}
                               for name in sorted(forgotten)])
    twins = [row for row in kept if row["text"].lower().startswith("twin")]
    unique = [row for row in kept if row not in twins[1:]]
    write("data/unique", unique, [
        {"id": twin["id"], "stage": "dedup", "rule": "near_duplicate", "value": 0.9, "threshold": 0.8,
         "verdict": "removed", "detail": twins[0]["id"]} for twin in twins[1:]])
    write("data/mixture", [row | {"split": "train", "copy": 0, "order": row["id"]} for row in unique])
    Path("data/profile.json").write_text(json.dumps({"documents": len(kept)}))
    return len(unique)


def encode():
    manifest = json.loads(Path("data/snapshot/manifest.json").read_text())
    Path("data/tokens").mkdir()
    entries = []
    for number, file in enumerate(manifest["files"]):
        rows = pq.read_table(f"data/snapshot/{file['path']}").to_pylist()
        name = f"train-{number:05d}.bin"
        Path("data/tokens", name).write_bytes(" ".join(row["text"] for row in rows).encode())
        counts = [len(row["text"].split()) + 2 for row in rows]
        columns = {"id": [row["id"] for row in rows], "copy": [row["copy"] for row in rows],
                   "tokens": counts, "characters": [len(row["text"]) for row in rows]}
        write_documents(Path("data/tokens", documents_name(name)),
                        {key: pa.array(values) for key, values in columns.items()})
        entries.append({"file": name, "tokens": sum(counts)})
    index = {"splits": {"train": entries, "validation": []}, "snapshot": manifest["snapshot"]}
    Path("data/tokens/index.json").write_text(json.dumps(index))
    return sum(entry["tokens"] for entry in entries)


def pretrain():
    Path("artifacts/base").mkdir(parents=True)
    Path("artifacts/base/weights").write_text(Path("data/tokens/index.json").read_text())
    return 1


def release():
    Path("artifacts/release").mkdir(parents=True)
    Path("artifacts/release/release.json").write_text(json.dumps({"name": "toy", "version": "1.0.0"}))
    Path("artifacts/release/weights").write_text(Path("artifacts/base/weights").read_text())
    return 1


with Path("executions.log").open("a") as log:
    log.write(sys.argv[1] + "\\n")
Path("reports").mkdir(exist_ok=True)
result = globals()[sys.argv[1]]()
Path(f"reports/{sys.argv[1]}.json").write_text(json.dumps({"count": result}))
'''

REFINED = ["data/scored", "data/clean", "data/unique", "data/mixture", "data/profile.json"]
GRAPH = {
    "collect": (["source.txt"], ["data/raw"]),
    "refine": (["data/raw", "forgotten.jsonl"], REFINED),
    "snapshot": (["data/mixture"], ["data/snapshot"]),
    "encode": (["data/snapshot"], ["data/tokens"]),
    "pretrain": (["data/tokens"], ["artifacts/base"]),
    "release": (["artifacts/base"], ["artifacts/release"]),
}
LINES = [f"document number {n} about the sea and its ships" for n in range(8)] + ["twin one", "twin two"]


class Corpus:
    """The project's folder, and what a person does in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def begin(self) -> None:
        """Write the project, commit it."""
        folder = self.folder
        (folder / "toy").mkdir(parents=True)
        (folder / "toy" / "__init__.py").touch()
        (folder / "toy" / "layers.py").write_text(LAYERS)
        (folder / "source.txt").write_text("".join(f"{line}\n" for line in LINES))
        (folder / "forgotten.jsonl").write_text("\n")
        (folder / ".gitignore").write_text(
            "/data/\n/artifacts/\n/reports/\n/work/\n__pycache__/\nexecutions.log\n"
        )
        (folder / "resources.yaml").write_text("work: work\n")
        (folder / "params.yaml").write_text(
            "# what decides\ncollect:\n  lines: 10 # of the source\nrefine: {upper: false}\n"
            "snapshot: {note: ''}\nencode: {}\npretrain: {}\nrelease: {}\n"
        )
        stages = {}
        for name, (deps, outs) in GRAPH.items():
            command = f"python -m toy.layers {name}"
            if name == "snapshot":
                command = "python -m tasks.corpus.snapshot data/mixture data/snapshot"
            stages[name] = {
                "cmd": command,
                "deps": ["toy/layers.py", *deps],
                "params": [name],
                "outs": outs,
                "metrics": [{f"reports/{name}.json": {"cache": False}}],
            }
        (folder / "dvc.yaml").write_text(yaml.safe_dump({"stages": stages}, sort_keys=False))
        self.git("init", "--quiet", "--initial-branch=main")
        self.dvc("init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "project")

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=T", "-c", "user.email=t@localhost", *arguments]
        return subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, text=True
        ).stdout.strip()

    def dvc(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dvc", *arguments],
            cwd=self.folder,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *, commit: str | None = None, **changes: str) -> str:
        """Change parameters by replacing text, bring everything up to date, commit; the snapshot's name."""
        params = (self.folder / "params.yaml").read_text()
        for old, new in changes.items():
            params = params.replace(old.replace("__", ": "), new)
        (self.folder / "params.yaml").write_text(params)
        self.dvc("repro")
        if commit:
            self.git("add", "--all")
            self.git("commit", "--quiet", "-m", commit)
        return self.name

    @property
    def name(self) -> str:
        manifest = yaml.safe_load((self.folder / "data/snapshot/manifest.json").read_text())
        return manifest["snapshot"]

    @property
    def executions(self) -> list[str]:
        log = self.folder / "executions.log"
        return log.read_text().split() if log.exists() else []

    def state(self) -> dict[str, bytes]:
        """Every file of the layers, the lock and the parameters."""
        files = [*(self.folder / "data").rglob("*"), self.folder / "dvc.lock", self.folder / "params.yaml"]
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in sorted(files)
            if path.is_file()
        }

    def document(self, number: int) -> str:
        return record_id("docs", f"source.txt:{number}", LINES[number])


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project without data, made once."""
    made = Corpus(tmp_path_factory.mktemp("written") / "project")
    made.begin()
    return made.folder


@pytest.fixture(scope="session")
def run_twice(written: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, str]]:
    """A project with two snapshots in two commits, made once."""
    folder = tmp_path_factory.mktemp("run") / "project"
    shutil.copytree(written, folder)
    made = Corpus(folder)
    first = made.run(commit="first")
    return folder, (first, made.run(commit="second", lines__10="lines: 6", upper__false="upper: true"))


@pytest.fixture
def corpus(
    request: pytest.FixtureRequest, tmp_path: Path, written: Path, monkeypatch: pytest.MonkeyPatch
) -> Corpus:
    """A project in the current folder: without data, or with that of `two` for a test that asks for it."""
    folder = tmp_path / "project"
    source = request.getfixturevalue("run_twice")[0] if "two" in request.fixturenames else written
    shutil.copytree(source, folder)
    monkeypatch.chdir(folder)
    for name in ("remote", "cold"):
        monkeypatch.setenv(f"GRISTMILL_STORAGE__{name.upper()}", str(tmp_path / name))
    return Corpus(folder)


@pytest.fixture
def two(run_twice: tuple[Path, tuple[str, str]], corpus: Corpus) -> tuple[str, str]:
    """The names of two snapshots in two commits; the second has fewer documents, in capitals."""
    return run_twice[1]


@pytest.fixture
def gristmill(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Give a command; its status, what it printed, and what it complained about."""

    def give(*arguments: str) -> tuple[int, str, str]:
        with contextlib.chdir(corpus.folder):
            status = cli.main(list(arguments))
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return give
