"""One digest of some files of a directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def directory_digest(directory: Path, names: Iterable[str]) -> str:
    """SHA-256 over the names and contents of those files of ``names`` that are there, in that order."""
    total = hashlib.sha256()
    for name in names:
        path = directory / name
        if path.is_file():
            with path.open("rb") as content:
                found = hashlib.file_digest(content, "sha256").hexdigest()
            total.update(f"{name}\0{found}\0".encode())
    return total.hexdigest()
