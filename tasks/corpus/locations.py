"""Where the files of a source lie: on this machine's disks, or on any file system that fsspec knows.

Names of files are relative, so that a record has the same id wherever the corpus lies: to the corpus
directory where the source's path is, else to the folder that the path names (of a glob, the part before the
first wildcard).
"""

from __future__ import annotations

import fnmatch
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tasks.corpus.found_files import FoundFile, NoFile, is_hidden, joined, readable_name
from tasks.corpus.local_files import local_file, walk
from tasks.corpus.store_errors import Interrupted, Unreadable, is_final, reason_of, true_error, what_is_needed
from tasks.stage import StageError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

HTTP_DEPTH = 16
"""Index pages may link to one another without end."""

FLAT = {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss"}
"""Stores without folders: one listing has all that lies below."""

MEMORY_BYTES = 64 * 2**20
"""A file that comes over HTTP is kept in memory up to here, else on disk while it is read."""


@dataclass(frozen=True)
class Location:
    """The place that a source's ``path`` names.

    Args:
        url: an absolute path or a URL, without wildcards.
        pattern: the part of the path from the first wildcard on; None where there is none.
        prefix: what the names of the files begin with.
        options: what fsspec passes to the file system.
    """

    url: str
    pattern: str | None
    prefix: str
    options: dict[str, Any]

    @property
    def is_local(self) -> bool:
        """Whether the files lie on disks of this machine, or on such as look like it."""
        return "://" not in self.url

    @property
    def is_http(self) -> bool:
        """Whether the files come from a web server."""
        return self.url.startswith(("http://", "https://"))

    @cached_property
    def file_system(self) -> AbstractFileSystem:
        """The file system, made anew in each process.

        Raises:
            StageError: if a library that it needs is not there.
        """
        import fsspec

        options: dict[str, Any] = {**self.options}
        if self.is_http:
            import aiohttp

            # The bytes are wanted as they lie there: a server may call a .gz a page that it has compressed.
            options["headers"] = {"Accept-Encoding": "identity", **options.get("headers", {})}
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=120)
            ours = {"timeout": timeout, "auto_decompress": False}
            options["client_kwargs"] = ours | options.get("client_kwargs", {})
        if not self.is_local:
            options["use_listings_cache"] = False
        try:
            return fsspec.core.url_to_fs(self.url, **options)[0]
        except Exception as error:
            raise StageError(f"{self.url}: {what_is_needed(self.url, error)}") from None

    def find(self, files: str) -> Iterator[FoundFile | NoFile]:
        """The files in the order of their names; hidden ones are left out.

        ``files`` selects those of a directory, where the path names one.

        Raises:
            StageError: the path does not exist, or cannot be listed; the message has the URL and the reason.
        """
        found = self._local(files) if self.is_local else iter(self._remote(files))
        yield from sorted(found, key=lambda file: file.name)

    def open(self, file: FoundFile) -> BinaryIO:
        """Open a file for reading at any offset.

        Raises:
            Unreadable: it cannot be opened, and trying again would not help.
            Interrupted: its store does not answer.
        """
        try:
            if self.is_http:
                return self._fetched(file.path)
            return cast(BinaryIO, self.file_system.open(file.path, "rb"))
        except Exception as error:
            raise self.failure(file, error) from None

    def info(self, file: FoundFile) -> FoundFile:
        """The file with what its store says of it alone.

        Raises:
            Unreadable, Interrupted: as `open`.
        """
        try:
            return _found(file.path, file.name, self.file_system.info(file.path))
        except Exception as error:
            raise self.failure(file, error) from None

    def failure(self, file: FoundFile, error: Exception) -> Unreadable | Interrupted:
        """What an error that came while a file was read means."""
        error = true_error(error)
        if self.is_local or is_final(error):
            return Unreadable(reason_of(error))
        return Interrupted(f"{file.path}: {reason_of(error)}")

    def _fetched(self, path: str) -> BinaryIO:
        # Many servers do not serve ranges: the whole file comes in one answer.
        fetched = tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES)  # noqa: SIM115
        try:
            self.file_system.get_file(path, fetched)
        except BaseException:
            fetched.close()
            raise
        fetched.seek(0)
        return cast(BinaryIO, fetched)

    def _local(self, files: str) -> Iterator[FoundFile | NoFile]:
        root = self.url
        if not os.path.lexists(root):
            raise StageError(f"{root} does not exist")
        if not Path(root).is_dir():
            found = local_file(root, self.prefix or Path(root).name)
            if isinstance(found, NoFile):
                raise StageError(f"{root} cannot be read: {found.detail}")
            yield found
            return
        for relative, path in walk(root, self._depth):
            if isinstance(path, NoFile):
                yield NoFile(joined(self.prefix, relative), path.rule, path.detail)
            elif self._selected(relative, files):
                yield local_file(path, joined(self.prefix, relative))

    def _remote(self, files: str) -> list[FoundFile]:
        try:
            return self._listed(files)
        except StageError:
            raise
        except Exception as raised:  # each file system raises errors of its own libraries
            error = true_error(raised)
            if isinstance(error, FileNotFoundError) or getattr(error, "status", None) == 404:
                said = f"{self.url} does not exist ({reason_of(error)})"
            elif isinstance(error, PermissionError) or getattr(error, "status", None) in (401, 403):
                why = reason_of(error)
                said = f"{self.url}: access is denied ({why}); credentials come from the environment"
            else:
                said = f"{self.url} cannot be listed: {what_is_needed(self.url, error)}"
            raise StageError(said) from None

    def _listed(self, files: str) -> list[FoundFile]:
        system = self.file_system
        root = str(system._strip_protocol(self.url))
        if self.is_http:
            is_directory = self.pattern is not None or self.url.endswith("/")
        else:
            is_directory = self.pattern is not None or system.info(root)["type"] == "directory"
        if not is_directory:
            name = root.rstrip("/").rpartition("/")[2].partition("?")[0]
            return [_found(root, name or self.url, system.info(root))]
        start = root.rstrip("/") + "/"
        found = []
        for path, info in self._below(root):
            relative = path.removeprefix(start).partition("?")[0]
            if info.get("type") == "file" and not path.endswith("/") and self._selected(relative, files):
                found.append(_found(path, relative, info))
        return found

    def _below(self, root: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every file below a directory of a store, with what the store says of it."""
        system = self.file_system
        empty = True
        if self._depth is None and self.url.partition("://")[0] in FLAT:
            for path, info in cast(dict[str, dict[str, Any]], system.find(root, detail=True)).items():
                empty = False
                yield path, info
        else:
            depth = min(self._depth or HTTP_DEPTH, HTTP_DEPTH) if self.is_http else self._depth
            for _, _, files in system.walk(root, maxdepth=depth, detail=True, on_error="raise"):
                for info in cast(dict[str, dict[str, Any]], files).values():
                    empty = False
                    yield str(info["name"]), info
        if empty:
            system.ls(root, detail=False)  # raises what find keeps to itself: no such bucket, no access

    @cached_property
    def _depth(self) -> int | None:
        """How many folders deep the pattern reaches; None: without end."""
        return None if self.pattern is None or "**" in self.pattern else self.pattern.count("/") + 1

    def _selected(self, relative: str, files: str) -> bool:
        if is_hidden(relative):
            return False
        if self.pattern is not None:
            return self._matches.match(relative) is not None
        return fnmatch.fnmatchcase(relative, files)

    @cached_property
    def _matches(self) -> re.Pattern[str]:
        from fsspec.utils import glob_translate

        return re.compile(glob_translate(self.pattern or "**"))


def locate(path: str, corpus: Path, options: dict[str, Any]) -> Location:
    """The location that a source's ``path`` names, relative to the corpus directory if it is relative."""
    if path.startswith(("file://", "local://")):
        path = "/" + path.partition("://")[2].lstrip("/")
    if "://" in path:
        fixed, pattern = _split(path, "*[" if path.startswith("http") else "*?[")
        return Location(fixed, pattern, "", options)
    if Path(path).is_absolute():
        fixed, pattern = (path, None) if os.path.lexists(path) else _split(path, "*?[")
        return Location(fixed, pattern, "", {})
    whole = corpus.absolute() / path
    fixed, pattern = (path, None) if os.path.lexists(whole) else _split(path, "*?[")
    prefix = os.path.normpath(fixed or ".")
    return Location(
        str(corpus.absolute() / fixed), pattern, "" if prefix == "." else readable_name(prefix), {}
    )


def _split(path: str, wildcards: str) -> tuple[str, str | None]:
    """A path before the first part with a wildcard, and from there on."""
    parts = path.split("/")
    for number, part in enumerate(parts):
        if any(character in part for character in wildcards):
            fixed = "/".join(parts[:number])
            is_url_or_root = "://" in path or path.startswith("/")
            return (f"{fixed}/" if is_url_or_root else fixed), "/".join(parts[number:])
    return path, None


def _found(path: str, name: str, info: dict[str, Any]) -> FoundFile:
    size = info.get("size")
    return FoundFile(path, readable_name(name), None if size is None else int(size), _identity(info))


def _identity(info: dict[str, Any]) -> str | None:
    """What a store says of a file's content: its entity tag, else when it was changed."""
    told = {re.sub(r"[^a-z]", "", str(key).lower()): value for key, value in info.items()}
    if told.get("etag"):
        return f"etag:{str(told['etag']).strip(chr(34))}"
    for key in ("lastmodified", "modificationtime", "updated", "mtime", "modified"):
        if told.get(key):
            value = told[key]
            return f"modified:{value.isoformat() if hasattr(value, 'isoformat') else value}"
    return None
