"""The command `git`, in a folder of the project."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from flows.project import BadInput


def git(folder: Path, *arguments: str) -> str:
    """What git answers, without the white space around it.

    Raises:
        BadInput: with what git says, if it fails.
    """
    done = subprocess.run(
        ["git", "-c", "core.quotePath=false", *arguments],
        cwd=folder,
        env=os.environ | _identity(folder, arguments),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BadInput(f"`git {' '.join(arguments)}` failed in {folder}: {done.stderr.strip()}")
    return done.stdout.strip()


def _identity(folder: Path, arguments: tuple[str, ...]) -> dict[str, str]:
    """Who commits, where git does not know."""
    if not {"commit", "commit-tree", "stash"} & set(arguments):
        return {}
    known = subprocess.run(["git", "var", "GIT_COMMITTER_IDENT"], cwd=folder, capture_output=True)
    if known.returncode == 0:
        return {}
    return {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Gristmill"), ("EMAIL", "gristmill@localhost"))
    }
