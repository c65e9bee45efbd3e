"""A file of a source, as it was found, and its name."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a source; ``identity`` is what its store says of its content, where it says anything."""

    path: str
    name: str
    size: int | None
    identity: str | None = None


@dataclass(frozen=True, slots=True)
class NoFile:
    """Something that lies among the files of a source and cannot be read as one."""

    name: str
    rule: str
    detail: str


def is_hidden(relative: str) -> bool:
    """Whether a file does not count: hidden itself, or in a hidden folder, or compiled Python."""
    return any(part.startswith(".") or part == "__pycache__" for part in relative.split("/"))


def readable_name(name: str) -> str:
    r"""A file name of any bytes as text that UTF-8 can hold, another for each name.

    A byte that is no UTF-8 is ``\xff``, so what reads like that in a name as it stands is told with its
    backslash escaped, as ``\x5cxff``.
    """
    return os.fsencode(name.replace("\\x", r"\x5cx")).decode("utf-8", "backslashreplace")


def joined(prefix: str, relative: str) -> str:
    """A name below a folder's name, either of which may be empty."""
    return f"{prefix}/{relative}" if prefix and relative else prefix or relative
