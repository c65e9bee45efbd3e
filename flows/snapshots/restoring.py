"""Bring a snapshot and its layers back into the working tree: all of it or nothing."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flows.git_command import git
from flows.project import LOCK, PARAMETERS, RESTORING, BadInput
from flows.snapshots.known import Snapshot
from flows.snapshots.locks import Lock, known_locks
from flows.snapshots.objects import FOLDER, Objects, file_md5
from flows.snapshots.restored_parameters import differing_parameters, with_sections
from flows.snapshots.transfers import REQUIRED, pull


@dataclass
class Restored:
    """What a restore did, and what keeps the stages from being up to date."""

    outputs: list[str] = field(default_factory=list)
    """those that were exchanged; the others were right already"""
    parameters: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    """parameters that differ, by their name: those of the snapshot, those of params.yaml"""
    code: list[str] = field(default_factory=list)
    """files that stages depend on and that differ from those the snapshot was made with"""
    reports: list[str] = field(default_factory=list)
    """reports that are in no cache: their stages run once more"""


def restore(project: Path, objects: Objects, snapshot: Snapshot, *, parameters: bool) -> Restored:
    """Make data/snapshot and the other outputs of the stages from collect to encode those of a snapshot, and
    the entries of these stages in ``dvc.lock`` too; with ``parameters`` also their sections of parameters.

    Everything is laid beside its place first; then a journal is written, and all is renamed. A process that
    is killed before the journal leaves the old state, after it `finish_restore` makes the new one.

    Raises:
        BadInput: something here would be lost; a part of the snapshot is nowhere.
    """
    outs = snapshot.lock.outs
    stages = _stages(snapshot.lock.text)
    wanted = {path: outs[path] for stage in stages.values() for path in _outputs_of(stage) if path in outs}
    done = Restored()
    with _writing(objects, [project / path for path in wanted]), _swept(project, wanted):
        _refuse_unsaved(project, objects, snapshot)
        done.parameters = differing_parameters(project / PARAMETERS, stages)
        if parameters and done.parameters:
            _refuse_uncommitted(project)
        pull(objects, objects.remotes, wanted)
        moves: list[tuple[Path, Path]] = []
        for path, output in wanted.items():
            here = _hash_of(objects, project / path)
            if here == output:
                continue
            if path not in REQUIRED and not objects.cache.path(output).is_file():
                done.reports.append(path)
                continue
            moves.append((_lay(objects, output, project / path), project / path))
            done.outputs.append(path)
        if parameters and done.parameters:
            text = with_sections(project / PARAMETERS, stages)
            moves.append((_lay_text(project / PARAMETERS, text), project / PARAMETERS))
            done.parameters = {}
        lock = _merged_lock(project, stages)
        if not (project / LOCK).exists() or (project / LOCK).read_text("utf-8") != lock:
            moves.append((_lay_text(project / LOCK, lock), project / LOCK))
        if moves:
            _write_journal(project, moves)
            finish_restore(project)
        _remember(objects, project, wanted)
    done.code = _differing_code(project, stages, snapshot.lock)
    return done


def finish_restore(project: Path) -> bool:
    """Do what a journal says is left to be done; returns whether there was one."""
    journal = project / RESTORING
    if not journal.is_file():
        return False
    for laid, target in json.loads(journal.read_text("utf-8"))["moves"]:
        laid, target = project / laid, project / target
        retired = target.with_name(f".{target.name}.retired")
        if laid.exists():
            if target.exists():
                _remove(retired)
                target.rename(retired)
            laid.rename(target)
        _remove(retired)
    journal.unlink()
    return True


def _stages(lock: str) -> dict[str, Any]:
    """The stages of a lock that make the layers, as DVC reads them."""
    from dvc.utils.serialize import parse_yaml

    stages = parse_yaml(lock, LOCK)["stages"]
    return {name: stage for name, stage in stages.items() if REQUIRED & set(_outputs_of(stage))}


def _outputs_of(stage: dict[str, Any]) -> list[str]:
    return [out["path"] for out in stage.get("outs", [])]


@contextmanager
def _writing(objects: Objects, paths: Iterable[Path]) -> Iterator[None]:
    """No stage reads or writes these outputs meanwhile.

    Raises:
        BadInput: one does.
    """
    from dvc.lock import LockError
    from dvc.rwlock import rwlock

    repo = objects.repo
    try:
        with rwlock(repo.tmp_dir, repo.fs, "gristmill snapshot restore", [], [str(p) for p in paths], False):
            yield
    except LockError as error:
        raise BadInput(f"a stage is at work on the layers: {error}") from None


@contextmanager
def _swept(project: Path, outputs: Iterable[str]) -> Iterator[None]:
    """Nothing that was laid stays: not of a restore that was killed, and not of this one."""
    paths = [project / path for path in (*outputs, *REQUIRED, LOCK, PARAMETERS, RESTORING)]

    def sweep() -> None:
        for path in paths:
            _remove(_beside(path))

    sweep()
    try:
        yield
    finally:
        if not (project / RESTORING).exists():
            sweep()


def _beside(path: Path) -> Path:
    """Where what is to take a path's place is laid."""
    return path.with_name(f".{path.name}.restored")


def _refuse_unsaved(project: Path, objects: Objects, snapshot: Snapshot) -> None:
    """Nothing here may be lost: outputs must be in a cache or a remote, and the lock in a commit.

    Raises:
        BadInput: naming what is not, and the command that saves it.
    """
    makers = {path: name for name, stage in _current_stages(project).items() for path in _outputs_of(stage)}
    target = snapshot.all_outputs()
    unsaved = []
    for path in sorted(REQUIRED):
        if not (project / path).exists() or _hash_of(objects, project / path) == target.get(path):
            continue
        names = _objects_of(objects, project / path)
        lost = names - objects.cache.held(names)
        for store in objects.remotes if lost else []:
            lost -= store.held(lost)
        if lost:
            unsaved.append(path)
    if unsaved:
        stages = sorted({makers[path] for path in unsaved if path in makers})
        how = f"`dvc commit -f {' '.join(stages)}` saves it" if stages else "move it elsewhere, or remove it"
        raise BadInput(f"{', '.join(unsaved)} would be lost: no cache and no remote has what is there; {how}")
    mine = [lock for lock in known_locks(project) if lock.stands_in(project)]
    for lock in mine:
        recorded = {path: output for path, output in lock.outs.items() if path in REQUIRED}
        if recorded and not lock.commit and not _is_recorded(project, recorded):
            raise BadInput(
                f"{project / LOCK} records layers that no commit records: "
                f"`git add {LOCK} {PARAMETERS} && git commit` saves them"
            )


def _refuse_uncommitted(project: Path) -> None:
    """Sections of the parameters may be replaced where git has what stands there.

    Raises:
        BadInput: it has not.
    """
    if git(project, "status", "--porcelain", "--", PARAMETERS):
        raise BadInput(f"{project / PARAMETERS} has changes that --params would overwrite: commit them first")


def _is_recorded(project: Path, recorded: dict[str, str]) -> bool:
    """Whether some commit has a lock with these outputs."""
    return any(lock.commit and recorded.items() <= lock.outs.items() for lock in known_locks(project))


def _hash_of(objects: Objects, path: Path) -> str | None:
    """The hash that DVC has, or would have, for what is there; None if nothing is."""
    built = _built(objects, path)
    return None if built is None else str(built.hash_info.value)


def _objects_of(objects: Objects, path: Path) -> set[str]:
    built = _built(objects, path)
    if built is None:
        return set()
    files = [entry.value for _, _, entry in built] if str(built.hash_info.value).endswith(FOLDER) else []
    return {str(built.hash_info.value), *files}


def _built(objects: Objects, path: Path) -> Any:
    """DVC's own object for a path; it knows the hashes of files that did not change since it last looked."""
    from dvc_data.hashfile.build import build
    from dvc_objects.fs.local import LocalFileSystem

    if not path.exists():
        return None
    return build(objects.repo.cache.local, str(path), LocalFileSystem(), "md5", dry_run=True)[2]


def _lay(objects: Objects, output: str, path: Path) -> Path:
    """Put an output beside its place, from the cache, as DVC does (copied or linked)."""
    from dvc_data.hashfile import load
    from dvc_data.hashfile.checkout import checkout
    from dvc_data.hashfile.hash_info import HashInfo
    from dvc_objects.fs.local import LocalFileSystem

    laid = _beside(path)
    laid.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json" and not output.endswith(FOLDER):  # a report is never a link: stages write it
        shutil.copyfile(objects.cache.path(output), laid)
        return laid
    odb = objects.repo.cache.local
    checkout(str(laid), LocalFileSystem(), load(odb, HashInfo("md5", output)), odb, force=True, quiet=True)
    if not laid.exists():  # a folder without files
        laid.mkdir()
    return laid


def _lay_text(path: Path, text: str) -> Path:
    laid = _beside(path)
    with laid.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return laid


def _write_journal(project: Path, moves: list[tuple[Path, Path]]) -> None:
    journal = project / RESTORING
    content = {"moves": [[str(path.relative_to(project)) for path in move] for move in moves]}
    _lay_text(journal, json.dumps(content, indent=1)).replace(journal)


def _current_stages(project: Path) -> dict[str, Any]:
    from dvc.utils.serialize import parse_yaml

    path = project / LOCK
    return (parse_yaml(path.read_text("utf-8"), LOCK).get("stages") or {}) if path.exists() else {}


def _merged_lock(project: Path, stages: dict[str, Any]) -> str:
    """The lock of the working tree with these stages' entries in place of those that make the layers."""
    from dvc.utils.serialize import dumps_yaml

    others = {
        name: stage
        for name, stage in _current_stages(project).items()
        if name not in stages and not REQUIRED & set(_outputs_of(stage))
    }
    return dumps_yaml({"schema": "2.0", "stages": stages | others})


def _remember(objects: Objects, project: Path, wanted: dict[str, str]) -> None:
    """Tell DVC the hashes of what was laid, so that it need not read it all again."""
    from dvc_data.hashfile.hash_info import HashInfo
    from dvc_objects.fs.local import LocalFileSystem

    entries = []
    for path, output in wanted.items():
        for name, entry in (objects.files(output) or {}).items():
            file = project / path / name if name else project / path
            if file.is_file() and file.stat().st_size == objects.cache.path(entry).stat().st_size:
                entries.append((str(file), HashInfo("md5", entry), None))
    objects.repo.state.save_many(entries, LocalFileSystem())


def _differing_code(project: Path, stages: dict[str, Any], lock: Lock) -> list[str]:
    """Files, apart from outputs, that the stages depended on and that are other ones now."""
    deps = {dep["path"]: str(dep.get("md5")) for stage in stages.values() for dep in stage.get("deps", [])}
    return sorted(
        path
        for path, md5 in deps.items()
        if path not in lock.outs
        and not md5.endswith(FOLDER)
        and (not (project / path).is_file() or file_md5(project / path) != md5)
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
