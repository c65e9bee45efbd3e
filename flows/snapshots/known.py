"""The snapshots that there are, and what is known of each."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from flows.project import BadInput
from flows.snapshots.locks import Lock, known_locks
from flows.snapshots.objects import FOLDER, Objects
from tasks.corpus.snapshot import Manifest

SNAPSHOT, TOKENS = "data/snapshot", "data/tokens"
MANIFEST, INDEX = "manifest.json", "index.json"

LAYERS = {
    "raw": ("data/raw",),
    "clean": ("data/scored", "data/clean", "data/unique", "data/mixture", "data/profile.json"),
    "tokens": (SNAPSHOT, TOKENS),
}
"""The outputs of the stages from collect to encode, as ``storage.retention`` has them."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot, and the locks that record it, newest first."""

    name: str
    output: str
    """the hash of data/snapshot"""
    locks: tuple[Lock, ...]
    manifest: Manifest | None
    """None where neither the cache nor the working tree has it"""
    tokens: int | None

    @property
    def lock(self) -> Lock:
        """The newest one, by which it is restored."""
        return self.locks[0]

    @property
    def when(self) -> datetime.datetime:
        """When it was first recorded."""
        return self.locks[-1].when

    @property
    def short(self) -> str:
        """Enough of its name to tell it from others, mostly."""
        return self.name[:12]

    @property
    def documents(self) -> int | None:
        """Rows, copies included."""
        return None if self.manifest is None else sum(file.rows for file in self.manifest.files)

    def outputs(self, layer: str) -> dict[str, str]:
        """The hashes of a layer's outputs, by their path."""
        return {path: self.lock.outs[path] for path in LAYERS[layer] if path in self.lock.outs}

    def all_outputs(self) -> dict[str, str]:
        """The hashes of all layers' outputs, by their path."""
        return {path: output for layer in LAYERS for path, output in self.outputs(layer).items()}

    def stands_in(self, folder: Path) -> bool:
        """Whether it is that of a working tree's lock."""
        return any(lock.stands_in(folder) for lock in self.locks)

    @property
    def where(self) -> str:
        """The working tree and the newest commit that record it, as far as there are such."""
        committed = next((p for lock in self.locks for p in lock.places if p.commit), None)
        folder = next((p for lock in self.locks for p in lock.places if p.folder is not None), None)
        return ", ".join(str(place) for place in (folder, committed) if place)

    @property
    def is_in_use(self) -> bool:
        """Whether any working tree's lock records it."""
        return any(lock.is_in_use for lock in self.locks)


def known_snapshots(project: Path, objects: Objects, locks: Iterable[Lock] | None = None) -> list[Snapshot]:
    """All snapshots that a commit or a working tree records, newest first.

    Raises:
        BadInput: as `known_locks`.
    """
    by_output: dict[str, list[Lock]] = {}
    for lock in known_locks(project) if locks is None else locks:
        if SNAPSHOT in lock.outs:
            by_output.setdefault(lock.outs[SNAPSHOT], []).append(lock)
    found = [_snapshot(project, objects, output, held) for output, held in by_output.items()]
    return sorted(found, key=lambda snapshot: (snapshot.when, snapshot.name), reverse=True)


def find_snapshot(snapshots: list[Snapshot], prefix: str) -> Snapshot:
    """The one whose name begins so.

    Raises:
        BadInput: none does, or several do; they are named.
    """
    prefix = prefix.strip().lower()
    fitting = [snapshot for snapshot in snapshots if prefix and snapshot.name.startswith(prefix)]
    if len(fitting) == 1:
        return fitting[0]
    if not snapshots:
        raise BadInput(
            "no snapshot is known: no dvc.lock of a commit or of the working tree records data/snapshot; "
            "`gristmill run corpus` makes one"
        )
    candidates = "".join(
        f"\n  {snapshot.name}  {snapshot.lock.places[0]}" for snapshot in fitting or snapshots
    )
    what = f"{len(fitting)} snapshots' names begin" if fitting else "no snapshot's name begins"
    raise BadInput(f"{what} with {prefix!r}; {'these do' if fitting else 'known are'}:{candidates}")


def current_snapshot(project: Path, snapshots: list[Snapshot]) -> Snapshot:
    """That of the working tree.

    Raises:
        BadInput: it records none.
    """
    for snapshot in snapshots:
        if snapshot.stands_in(project):
            return snapshot
    raise BadInput(
        f"the dvc.lock of {project} records no snapshot: `gristmill run corpus` makes one; "
        "`gristmill snapshot list` shows those of commits"
    )


def _snapshot(project: Path, objects: Objects, output: str, locks: list[Lock]) -> Snapshot:
    here = any(lock.stands_in(project) for lock in locks)
    manifest = _manifest(_small_file(project, objects, SNAPSHOT, output, MANIFEST, here))
    tokens = None
    if locks[0].outs.get(TOKENS):
        content = _small_file(project, objects, TOKENS, locks[0].outs[TOKENS], INDEX, here)
        tokens = _tokens(content)
    name = manifest.snapshot if manifest else f"dvc-{output.removesuffix(FOLDER)}"
    return Snapshot(name, output, tuple(locks), manifest, tokens)


def _small_file(
    project: Path, objects: Objects, path: str, output: str, name: str, here: bool
) -> bytes | None:
    """A file of an output, from the cache, else from the working tree that records it."""
    entry = (objects.files(output) or {}).get(name)
    for place in ([objects.cache.path(entry)] if entry else []) + ([project / path / name] if here else []):
        if place.is_file():
            return place.read_bytes()
    return None


def _manifest(content: bytes | None) -> Manifest | None:
    try:
        return Manifest.model_validate_json(content) if content else None
    except ValidationError:
        return None


def _tokens(content: bytes | None) -> int | None:
    """All tokens of an index, of both splits."""
    import json

    try:
        splits = json.loads(content)["splits"] if content else {}
        return sum(file["tokens"] for files in splits.values() for file in files) or None
    except (ValueError, KeyError, TypeError):
        return None


def files_here(project: Path, objects: Objects, snapshot: Snapshot, path: str) -> dict[str, Path]:
    """An output's files that are on this machine, by their names: in the cache, else in the working tree."""
    output = snapshot.all_outputs().get(path)
    if output is None:
        return {}
    here = any(lock.stands_in(project) and lock.outs.get(path) == output for lock in snapshot.locks)
    listed = objects.files(output)
    if listed is None:
        folder = project / path if here else None
        found = folder.rglob("*") if folder and folder.is_dir() else ()
        return {file.relative_to(project / path).as_posix(): file for file in found if file.is_file()}
    files = {}
    for name, entry in listed.items():
        places = [objects.cache.path(entry), *([project / path / name] if here else [])]
        place = next((place for place in places if place.is_file()), None)
        if place is not None:
            files[name] = place
    return files


def document_files(project: Path, objects: Objects, snapshot: Snapshot) -> list[Path] | None:
    """The Parquet files of a snapshot's documents; None unless all are on this machine."""
    files = files_here(project, objects, snapshot, SNAPSHOT)
    wanted = [file.path for file in snapshot.manifest.files] if snapshot.manifest else []
    found = [files[name] for name in wanted if name in files]
    return found if snapshot.manifest and len(found) == len(wanted) else None
