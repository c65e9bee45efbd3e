"""What DVC stores: objects named by the MD5 of their bytes, in its cache and in remotes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.project import RESOURCES, BadInput
from flows.snapshots.locks import main_folder
from tasks.parameters import ParameterError, load_resources
from tasks.resources import StorageResources

if TYPE_CHECKING:
    from dvc.repo import Repo
    from dvc_data.hashfile.db import HashFileDB

FOLDER = ".dir"
"""What the name of an object that lists a folder's files ends in."""

WARM, COLD = "remote", "cold"
"""The keys of ``storage`` in ``resources.yaml``."""


@dataclass(frozen=True)
class Store:
    """A place that holds objects."""

    name: str
    where: str
    odb: HashFileDB

    @property
    def is_local(self) -> bool:
        """Whether its objects are files of this machine."""
        return self.odb.fs.protocol == "local"

    def path(self, name: str) -> Path:
        """Where an object lies, or would lie, in a local store."""
        return Path(self.odb.oid_to_path(name))

    def held(self, names: Iterable[str]) -> set[str]:
        """Those of the objects that it has, by looking at each.

        Raises:
            BadInput: it cannot be reached, or lets nobody in.
        """
        names = set(names)
        if self.is_local:
            return {name for name in names if self.path(name).is_file()}
        self.knock()
        try:
            return set(self.odb.oids_exist(names)) if names else set()
        except Exception as error:
            raise self.refused(error) from None

    def knock(self) -> None:
        """Ask a store elsewhere for the first level of its names: some errors look like absence later.

        Raises:
            BadInput: it cannot be reached, or lets nobody in.
        """
        try:
            self.odb.fs.fs.invalidate_cache()
            self.odb.fs.fs.ls(self.odb.path, detail=False)
        except FileNotFoundError as error:
            if "bucket" in str(error).lower():
                raise self.refused(error) from None
        except Exception as error:
            raise self.refused(error) from None

    def refused(self, error: BaseException) -> BadInput:
        """Why a store does not serve, and what may help."""
        told = " ".join(str(error).split())[:300] or type(error).__name__
        kind = type(error).__name__
        if isinstance(error, PermissionError) or "Credentials" in kind or "AccessKey" in told:
            hint = "check the credentials (for S3: AWS_PROFILE, AWS_ACCESS_KEY_ID, ~/.aws/credentials)"
        elif isinstance(error, FileNotFoundError):
            hint = "create it, or correct the name"
        else:
            hint = "check the address (for S3: AWS_ENDPOINT_URL, ~/.aws/config) and the network"
        return BadInput(f"storage.{self.name} ({self.where}) cannot be used: {kind}: {told}; {hint}")


class Objects:
    """DVC's cache of a project, and the remotes of ``resources.yaml``."""

    def __init__(self, repo: Repo, storage: StorageResources) -> None:
        self.repo = repo
        self.storage = storage
        self.cache = Store("cache", str(repo.cache.local.path), repo.cache.local)

    @cached_property
    def remotes(self) -> list[Store]:
        """Those that are configured, the warm one first.

        Raises:
            BadInput: one cannot be opened.
        """
        return [self.remote(name) for name in (WARM, COLD) if getattr(self.storage, name)]

    def remote(self, name: str) -> Store:
        """One of them, by its key.

        Raises:
            BadInput: it is not configured, or cannot be opened.
        """
        where = getattr(self.storage, name)
        if not where:
            raise BadInput(
                f"no place is configured: set `storage.{name}` in {RESOURCES} to a folder, a URL such as "
                "s3://bucket/place, or the name of a remote (`dvc remote list`)"
            )
        try:
            return Store(name, where, self.repo.cloud.get_remote_odb(_remote_name(self.repo, name, where)))
        except Exception as error:
            told = " ".join(str(error).split())
            raise BadInput(f"storage.{name} ({where}) cannot be opened: {told}") from None

    def files(self, output: str) -> dict[str, str] | None:
        """The objects of an output's files by their path in it (empty for a file); None without the list."""
        if not output.endswith(FOLDER):
            return {"": output}
        try:
            content = json.loads(self.cache.path(output).read_bytes())
            return {entry["relpath"]: entry["md5"] for entry in content}
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise BadInput(
                f"{self.cache.path(output)} in DVC's cache is broken: remove it, then `gristmill pull` or "
                "`dvc repro` brings it back"
            ) from None

    def names(self, outputs: Iterable[str]) -> set[str]:
        """All objects of some outputs, the lists of folders included, as far as the lists are here."""
        found: set[str] = set()
        for output in outputs:
            found |= {output, *(self.files(output) or {}).values()}
        return found

    def copy(self, source: Store, target: Store, names: Iterable[str]) -> int:
        """Copy objects that the target lacks; returns how many bytes.

        Lists of folders come after their files, so that a copy that ends half-way is never taken for a whole
        one. What is not what its name says is not kept.

        Raises:
            BadInput: a store does not serve, or an object is not what its name says.
        """
        missing = sorted(set(names) - target.held(names))
        if source is self.cache:
            self._refuse_damaged(missing)
        total = 0
        for part in (
            [name for name in missing if not name.endswith(FOLDER)],
            [name for name in missing if name.endswith(FOLDER)],
        ):
            total += self._copy(source, target, part)
        return total

    def _copy(self, source: Store, target: Store, names: list[str]) -> int:
        if not names:
            return 0
        failed: dict[str, BaseException] = {}
        paths: list[Any] = [source.odb.oid_to_path(name) for name in names]
        try:
            target.odb.add(
                paths,
                source.odb.fs,
                list(names),
                on_error=failed.__setitem__,
                check_exists=False,
                verify=target is self.cache,
            )
        except Exception as error:
            raise (target if source is self.cache else source).refused(error) from None
        for name, error in failed.items():
            if isinstance(error, FileNotFoundError) and target is self.cache:
                raise BadInput(f"object {name} is not in storage.{source.name} ({source.where})")
            raise (target if source is self.cache else source).refused(error)
        if target is self.cache:
            for name in names:
                if not target.path(name).is_file():
                    raise BadInput(
                        f"object {name} in storage.{source.name} ({source.where}) is damaged: its MD5 is not "
                        "its name. Remove it there, and push it again from a machine that has it"
                    )
        local = self.cache
        return sum(local.path(name).stat().st_size for name in names)

    def _refuse_damaged(self, names: Iterable[str]) -> None:
        for name in names:
            if file_md5(self.cache.path(name)) != name.removesuffix(FOLDER):
                raise BadInput(
                    f"{self.cache.path(name)} in DVC's cache is damaged: its MD5 is not its name. "
                    "`gristmill snapshot verify` tells what it belongs to"
                )


@contextmanager
def open_objects(project: Path, *, lock: bool = False) -> Iterator[Objects]:
    """Open DVC's cache and the remotes; with ``lock`` no other command of DVC's works meanwhile.

    Raises:
        BadInput: ``resources.yaml`` or DVC's configuration does not fit.
    """
    from contextlib import nullcontext

    from dvc.exceptions import DvcException
    from dvc.repo import Repo, lock_repo

    try:
        storage = load_resources(project / RESOURCES).storage
    except ParameterError as error:
        raise BadInput(str(error)) from None
    try:
        with (
            Repo(str(project), config=_configuration(project, storage), _wait_for_lock=True) as repo,
            lock_repo(repo) if lock else nullcontext(),
        ):
            yield Objects(repo, storage)
    except DvcException as error:
        raise BadInput(f"DVC cannot work in {project}: {error}") from error


def file_md5(path: Path) -> str:
    """MD5 of a file, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "md5").hexdigest()


def _configuration(project: Path, storage: StorageResources) -> dict[str, Any]:
    """The remotes of ``resources.yaml`` as DVC has them; a relative folder lies in the main working tree."""
    remotes = {}
    for name in (WARM, COLD):
        where = getattr(storage, name)
        if where:
            url = (
                where if "://" in where else str((main_folder(project) / Path(where).expanduser()).resolve())
            )
            remotes[f"storage-{name}"] = {"url": url}
    return {"remote": remotes}


def _remote_name(repo: Repo, name: str, where: str) -> str:
    """The user's own remote of that name, which may have options; else the one made of ``resources.yaml``."""
    return where if where in repo.config["remote"] else f"storage-{name}"
