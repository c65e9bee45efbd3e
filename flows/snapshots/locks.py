"""Every state of the project that git or a working tree knows: files ``dvc.lock``, and where they stand."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from flows.git_command import git
from flows.project import LOCK, BadInput
from tasks.parameters import parse_yaml


@dataclass(frozen=True)
class Place:
    """Where a ``dvc.lock`` stands: in a commit, or in a folder that a run may still work in."""

    when: datetime.datetime
    branch: str
    commit: str = ""
    folder: Path | None = None

    def __str__(self) -> str:
        return f"{self.branch} {self.commit[:10]}".strip()


@dataclass(frozen=True)
class Lock:
    """What one ``dvc.lock`` records, and the places where it stands, newest first."""

    stages: dict[str, Any]
    places: tuple[Place, ...]
    text: str = field(repr=False)

    @cached_property
    def outs(self) -> dict[str, str]:
        """The hash of each output by its path; that of a folder ends in ``.dir``."""
        found = (out for stage in self.stages.values() for out in stage.get("outs", []))
        return {out["path"]: str(out["md5"]) for out in found if "md5" in out}

    @property
    def commit(self) -> str:
        """The newest commit that has it; empty if none has."""
        return next((place.commit for place in self.places if place.commit), "")

    @property
    def when(self) -> datetime.datetime:
        """When it was first recorded, as far as is known."""
        return self.places[-1].when

    def stands_in(self, folder: Path) -> bool:
        """Whether it is that of a working tree."""
        return any(place.folder == folder for place in self.places)

    @property
    def is_in_use(self) -> bool:
        """Whether it is that of any working tree."""
        return any(place.folder is not None for place in self.places)


def known_locks(project: Path) -> list[Lock]:
    """The locks of all commits of all refs, and of all working trees; newest first.

    Raises:
        BadInput: one in a working tree is not one of DVC's.
    """
    contents: dict[str, list[Place]] = {}
    broken = {}
    for place, content in _found(project):
        contents.setdefault(content, []).append(place)
    locks = []
    for content, places in contents.items():
        places.sort(key=lambda place: (place.folder is not None, place.when), reverse=True)
        try:
            stages = parse_yaml(content)["stages"]
            locks.append(Lock(dict(stages), tuple(places), content))
        except (yaml.YAMLError, TypeError, KeyError, ValueError) as error:
            broken[places[0]] = error
    for place, error in broken.items():
        if place.folder is not None:  # what a commit has broken stays so, and stops nobody
            raise BadInput(f"{place.folder / LOCK} is not a lock of DVC's: {error!r}")
    return sorted(locks, key=lambda lock: (lock.when, lock.commit), reverse=True)


def main_folder(project: Path) -> Path:
    """The project in the repository's main working tree: a run's own worktree shares its storage."""
    try:
        first = git(project, "worktree", "list", "--porcelain").splitlines()[0].removeprefix("worktree ")
        folder = Path(first) / git(project, "rev-parse", "--show-prefix")
    except (BadInput, FileNotFoundError):
        return project
    return folder if (folder / "dvc.yaml").is_file() else project


def _found(project: Path) -> Iterator[tuple[Place, str]]:
    """Every place of a lock, with the lock's content."""
    try:
        prefix = git(project, "rev-parse", "--show-prefix")
        yield from _in_commits(project, f"{prefix}{LOCK}")
        yield from _in_folders(project, prefix)
    except (BadInput, FileNotFoundError):  # no git, no repository, no commit
        yield from _in_folder(project, "working tree")


def _in_commits(project: Path, path: str) -> Iterator[tuple[Place, str]]:
    top = Path(git(project, "rev-parse", "--show-toplevel"))
    log = git(top, "log", "--all", "--full-history", "--source", "--format=%H%x09%cI%x09%S", "--", path)
    contents: dict[str, str] = {}
    for line in log.splitlines():
        commit, when, ref = line.split("\t")
        entry = git(top, "ls-tree", commit, "--", path)
        if not entry:  # the commit removed it
            continue
        blob = entry.split()[2]
        if blob not in contents:
            contents[blob] = git(top, "cat-file", "blob", blob)
        branch = ref.removeprefix("refs/heads/").removeprefix("refs/")
        yield Place(datetime.datetime.fromisoformat(when), branch, commit), contents[blob]


def _in_folders(project: Path, prefix: str) -> Iterator[tuple[Place, str]]:
    listed = git(project, "worktree", "list", "--porcelain").splitlines()
    roots = [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]
    for root in roots:
        folder = (root / prefix).resolve()
        here = folder == project.resolve()
        yield from _in_folder(project if here else folder, "working tree" if here else str(folder))


def _in_folder(folder: Path, name: str) -> Iterator[tuple[Place, str]]:
    path = folder / LOCK
    if path.is_file():
        changed = datetime.datetime.fromtimestamp(path.stat().st_mtime).astimezone()
        yield Place(changed, name, folder=folder), path.read_text("utf-8").strip()
