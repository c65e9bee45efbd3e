"""What a document has reached: copies in snapshots, ranges of token files, models."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flows.snapshots.known import SNAPSHOT, TOKENS, Snapshot, document_files, files_here
from flows.snapshots.locks import Lock
from flows.snapshots.objects import Objects
from tasks.corpus.encoding.tables import documents_name, map_pieces, pieces_name

ARTIFACTS = "artifacts/"
RELEASE = "artifacts/release"
_TABLE = documents_name(".bin")
"""What the name of the table beside a token file ends in."""


@dataclass(frozen=True)
class Copy:
    """A row of a snapshot."""

    document: str
    content: str
    copy: int
    split: str


@dataclass(frozen=True)
class TokenRange:
    """Where a document, or a piece of it, lies in a token file: from ``start`` to before ``stop``, counted
    in tokens of the file, padding included."""

    document: str
    file: str
    start: int
    stop: int


@dataclass
class InSnapshot:
    """What a snapshot has of some documents."""

    snapshot: Snapshot
    copies: list[Copy] | None
    """None: the snapshot's documents are not on this machine, so nobody can tell"""
    ranges: list[TokenRange] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it is known to have any."""
        return bool(self.copies) or bool(self.ranges)


@dataclass(frozen=True)
class Model:
    """A model that was computed from a snapshot, directly or not."""

    path: str
    output: str
    where: str
    name: str = ""
    """of a release"""


def look_in_snapshots(
    project: Path, objects: Objects, snapshots: Iterable[Snapshot], ids: Collection[str]
) -> list[InSnapshot]:
    """Look for documents in each of the snapshots."""
    return [_look(project, objects, snapshot, ids) for snapshot in snapshots]


def ids_beginning(project: Path, objects: Objects, snapshots: Iterable[Snapshot], prefix: str) -> set[str]:
    """The ids in any snapshot on this machine that begin so."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found: set[str] = set()
    begins = (pc.field("id") >= prefix) & (pc.field("id") <= prefix + "g")  # behind every hexadecimal digit
    for snapshot in snapshots:
        for file in document_files(project, objects, snapshot) or []:
            found |= set(pq.read_table(file, columns=["id"], filters=begins).column("id").to_pylist())
    return found


def models_of(objects: Objects, locks: Iterable[Lock], snapshots: Iterable[Snapshot]) -> list[Model]:
    """The models that any lock records as made from these snapshots: from what was made of them, and on."""
    locks = list(locks)
    reached = {
        (path, lock.outs[path])
        for snapshot in snapshots
        for lock in snapshot.locks
        for path in (SNAPSHOT, TOKENS)
        if path in lock.outs
    }
    before = -1
    while before != len(reached):
        before = len(reached)
        for lock in locks:
            for stage in lock.stages.values():
                deps = {(dep["path"], str(dep.get("md5"))) for dep in stage.get("deps", [])}
                if deps & reached:
                    reached |= {(out["path"], str(out.get("md5"))) for out in stage.get("outs", [])}
    models: dict[tuple[str, str], Model] = {}
    for lock in locks:
        for path, output in lock.outs.items():
            if path.startswith(ARTIFACTS) and (path, output) in reached and (path, output) not in models:
                name = _release_name(objects, output) if path == RELEASE else ""
                models[path, output] = Model(path, output, str(lock.places[0]), name)
    return sorted(models.values(), key=lambda model: (model.path, model.where))


def _look(project: Path, objects: Objects, snapshot: Snapshot, ids: Collection[str]) -> InSnapshot:
    files = document_files(project, objects, snapshot)
    ranges = _ranges(files_here(project, objects, snapshot, TOKENS), ids)
    return InSnapshot(snapshot, None if files is None else _copies(files, ids), ranges)


def _copies(files: Sequence[Path], ids: Collection[str]) -> list[Copy]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = pc.field("id").isin(list(ids))
    columns = ["id", "content", "copy", "split"]
    rows = [row for file in files for row in pq.read_table(file, columns=columns, filters=wanted).to_pylist()]
    return [Copy(row["id"], row["content"], row["copy"], row["split"]) for row in rows]


def _ranges(files: dict[str, Path], ids: Collection[str]) -> list[TokenRange]:
    """The places of the documents, by the tables beside the token files."""
    import pyarrow.parquet as pq

    found = []
    for table in sorted(name for name in files if name.endswith(_TABLE)):
        rows = pq.read_table(files[table], columns=["id", "tokens"]).to_pydict()
        wanted = {row: name for row, name in enumerate(rows["id"]) if name in ids}
        if not wanted:
            continue
        file = table.replace(_TABLE, ".bin")
        pieces = files.get(pieces_name(file))
        if pieces is None:
            ends = list(itertools.accumulate(rows["tokens"]))
            found += [
                TokenRange(name, file, ends[row] - rows["tokens"][row], ends[row])
                for row, name in wanted.items()
            ]
            continue
        # Of packed sequences each has one token more than the context.
        size = json.loads(files["index.json"].read_bytes())["context"] + 1
        columns = map_pieces(pieces)
        for row in np.flatnonzero(np.isin(columns["document"], list(wanted))).tolist():
            start = int(columns["sequence"][row]) * size + int(columns["position"][row])
            stop = start + int(columns["tokens"][row])
            found.append(TokenRange(wanted[int(columns["document"][row])], file, start, stop))
    return found


def _release_name(objects: Objects, output: str) -> str:
    entry = (objects.files(output) or {}).get("release.json")
    if entry is None or not objects.cache.path(entry).is_file():
        return ""
    content = json.loads(objects.cache.path(entry).read_bytes())
    return f"{content.get('name', '')} {content.get('version', '')}".strip()
