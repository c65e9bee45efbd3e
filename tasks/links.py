"""Files that are kept twice and stored once, where the file system can."""

from __future__ import annotations

import shutil
from pathlib import Path


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Make ``target`` the same file as ``source``; a copy on another file system, or on one without links."""
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy(source, target)
