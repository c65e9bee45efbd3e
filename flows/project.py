"""The folder that a command works on, and the environment of what it starts there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

PARAMETERS = "params.yaml"
RESOURCES = "resources.yaml"
LOCK = "dvc.lock"
RESTORING = "data/.restoring.json"
"""What an interrupted restore of a snapshot left to be done (flows/snapshots/restoring.py)."""


class BadInput(Exception):
    """Something that a person gave or left out; the message says what, where, and what would be right."""


def find_project(start: Path | None = None) -> Path:
    """The nearest folder with a ``dvc.yaml``, from ``start`` (the current folder) upwards.

    Raises:
        BadInput: if there is none.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "dvc.yaml").is_file():
            return folder
    raise BadInput(f"there is no dvc.yaml in {start} or above it: run this from the project's folder")


def program_environment() -> dict[str, str]:
    """What a program is given: this interpreter as ``python``, output unbuffered, a plain shell."""
    binaries = str(Path(sys.executable).parent)
    path = os.environ.get("PATH", os.defpath)
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"},
        "PATH": os.pathsep.join([binaries, path]),
        "PYTHONUNBUFFERED": "1",
        "SHELL": "/bin/sh",
    }


def module_command(module: str, *arguments: str) -> list[str]:
    """Run an installed module; -P keeps a file of the same name in the current folder from being taken."""
    return [sys.executable, "-P", "-m", module, *arguments]
