"""Every byte of a snapshot and its layers against what the manifest and DVC say of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from flows.snapshots.known import SNAPSHOT, Snapshot
from flows.snapshots.objects import FOLDER, Objects

_CHUNK = 2**20


@dataclass
class Verification:
    """What was looked at, in lines to show, and what is wrong, a line for each file."""

    checked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    files: int = 0


def verify_snapshot(project: Path, objects: Objects, snapshot: Snapshot) -> Verification:
    """Read every file of the snapshot that is on this machine: in the working tree, where its lock records
    the snapshot, and in DVC's cache."""
    done = Verification()
    known: dict[str, bool] = {}
    sha256 = {file.path: file.sha256 for file in snapshot.manifest.files} if snapshot.manifest else {}
    if not sha256:
        done.faults.append(f"{SNAPSHOT}: manifest.json is in no cache: `gristmill pull {snapshot.short}`")
    here = next((lock for lock in snapshot.locks if lock.stands_in(project)), None)
    for path, output in (snapshot.all_outputs() if here is None else _outputs(snapshot, here.outs)).items():
        files = objects.files(output)
        if files is None:
            done.checked.append(f"{path}: not here")
            continue
        wanted = sha256 if path == SNAPSHOT else {}
        if path == SNAPSHOT and sha256:
            done.faults += [
                f"{path}/{name} is in the manifest, but not recorded" for name in sha256.keys() - files
            ]
        told = []
        if here is not None and (project / path).exists():
            told.append("working tree")
            _check_tree(project / path, path, files, wanted, done)
        present = {name: entry for name, entry in files.items() if objects.cache.path(entry).is_file()}
        if present:
            part = "" if len(present) == len(files) else f" ({len(present)} of {len(files)} files)"
            told.append(f"cache{part}")
            for name, entry in present.items():
                _check_object(
                    objects.cache.path(entry), f"{path}/{name}", entry, wanted.get(name), known, done
                )
        done.checked.append(f"{path}: {', '.join(told) or 'not here'}")
    return done


def _outputs(snapshot: Snapshot, outs: dict[str, str]) -> dict[str, str]:
    return {path: outs[path] for path in snapshot.all_outputs() if path in outs}


def _check_tree(
    folder: Path, name: str, files: dict[str, str], sha256: dict[str, str], done: Verification
) -> None:
    """An output in the working tree: nothing missing, nothing more, nothing changed."""
    if "" in files:
        _check_file(folder, name, files[""], None, done)
        return
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    done.faults += [f"{name}/{path} is missing in the working tree" for path in sorted(files.keys() - found)]
    done.faults += [
        f"{name}/{path} is in the working tree, but not recorded" for path in sorted(found - files.keys())
    ]
    for path in sorted(found & files.keys()):
        _check_file(folder / path, f"{name}/{path}", files[path], sha256.get(path), done)


def _check_file(path: Path, name: str, md5: str, sha256: str | None, done: Verification) -> None:
    done.files += 1
    found = _hashes(path)
    if found[0] != md5:
        done.faults.append(f"{name} in the working tree is not what dvc.lock records (MD5 differs)")
    if sha256 is not None and found[1] != sha256:
        done.faults.append(f"{name} in the working tree is not what the manifest lists (SHA-256 differs)")


def _check_object(
    path: Path, name: str, md5: str, sha256: str | None, known: dict[str, bool], done: Verification
) -> None:
    """An object of the cache, read once however many outputs have it."""
    if md5 in known and sha256 is None:
        if not known[md5]:
            done.faults.append(f"{name.rstrip('/')} in DVC's cache is damaged: {path}")
        return
    done.files += 1
    found = _hashes(path)
    known[md5] = found[0] == md5.removesuffix(FOLDER)
    if not known[md5]:
        done.faults.append(f"{name.rstrip('/')} in DVC's cache is damaged: {path}")
    elif sha256 is not None and found[1] != sha256:
        done.faults.append(f"{name} in DVC's cache is not what the manifest lists (SHA-256 differs): {path}")


def _hashes(path: Path) -> tuple[str, str]:
    """MD5 and SHA-256 of a file, in one reading."""
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK):
            md5.update(chunk)
            sha256.update(chunk)
    return md5.hexdigest(), sha256.hexdigest()
