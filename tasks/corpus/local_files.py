"""Files on this machine's disks: every one once, whatever links lead to it."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tasks.corpus.found_files import FoundFile, NoFile, is_hidden, joined, readable_name
from tasks.corpus.store_errors import reason_of


def walk(root: str, depth: int | None) -> Iterator[tuple[str, str | NoFile]]:
    """Everything that is no directory, at most ``depth`` folders deep, as (relative name, path).

    Each directory is entered once, under its own name where it has one here, else by a link: links may lead
    round in a circle.
    """
    entered = {_device_and_inode(root)}
    waiting = deque([("", root)])
    links: deque[tuple[str, str]] = deque()
    while waiting or links:
        if waiting:
            relative, directory = waiting.popleft()
        else:
            relative, directory = links.popleft()
            if _device_and_inode(directory) in entered:
                yield relative, NoFile(relative, "not_a_file", "a link to a folder that is read already")
                continue
            entered.add(_device_and_inode(directory))
        try:
            with os.scandir(directory) as scanned:
                entries = sorted(scanned, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            yield (
                relative,
                NoFile(relative, "unreadable", f"a folder that cannot be listed: {reason_of(error)}"),
            )
            continue
        for entry in entries:
            if is_hidden(entry.name):
                continue
            name = joined(relative, readable_name(entry.name))
            if depth is not None and name.count("/") + 1 >= depth and _is_directory(entry):
                continue
            if entry.is_dir(follow_symlinks=False):
                entered.add(_device_and_inode(entry.path))
                waiting.append((name, entry.path))
            elif _is_directory(entry):
                links.append((name, entry.path))
            else:
                yield name, entry.path


def local_file(path: str, name: str) -> FoundFile | NoFile:
    """A file of this machine, or what keeps it from being one."""
    try:
        found = Path(path).stat()
    except OSError as error:
        return NoFile(name, "unreadable", reason_of(error))
    if not stat.S_ISREG(found.st_mode):
        kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
        return NoFile(name, "not_a_file", kinds.get(stat.S_IFMT(found.st_mode), "a device"))
    return FoundFile(path, name, found.st_size)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _device_and_inode(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_dev, found.st_ino
