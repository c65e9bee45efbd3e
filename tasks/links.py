"""Files that are kept twice and stored once, where the file system can."""

from __future__ import annotations

import shutil
from pathlib import Path


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Make ``target``, new or not, the same file as ``source``; a copy where that cannot be (another file
    system, or one without links)."""
    Path(target).unlink(missing_ok=True)
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy(source, target)
