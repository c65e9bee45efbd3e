"""`gristmill advance`: the next run goes on from this one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from flows.project import BadInput, module_command, program_environment
from tasks.links import link_or_copy

WATERMARKS = "watermarks.json"
EARLIER = Path("earlier") / "index"


def advance(project: Path) -> list[str]:
    """Copy what was collected and what was kept to where the next run reads it; returns what changed.

    ``watermarks.json`` takes that of ``data/raw``, ``earlier/index`` the index of ``data/unique``, which DVC
    then tracks. Done twice it changes nothing the second time.

    Raises:
        BadInput: the corpus has not been made, or DVC fails.
    """
    collected = project / "data" / "raw" / WATERMARKS
    if not collected.exists():
        raise BadInput(f"{collected} does not exist: `gristmill run corpus` makes it")
    index = project / "data" / "unique" / "index"
    if not (index / "index.json").exists():
        raise BadInput(
            f"{index} holds no index of the documents that were kept: `gristmill run corpus` makes it, "
            "with dedup.keep_index: true"
        )
    changed = []
    if (project / WATERMARKS).read_bytes() != collected.read_bytes():
        shutil.copy(collected, project / WATERMARKS)
        changed.append(WATERMARKS)
    if _differ(index, project / EARLIER):
        _replace(index, project / EARLIER)
        _track(project)
        changed += [f"{EARLIER}.dvc", str(EARLIER.with_name(".gitignore"))]
    return changed


def _differ(index: Path, earlier: Path) -> bool:
    """An index is known by its manifest, which has the hashes of its files."""
    name = "index.json"
    return not (earlier / name).exists() or (earlier / name).read_bytes() != (index / name).read_bytes()


def _replace(index: Path, earlier: Path) -> None:
    partial, retired = (earlier.with_name(f".{earlier.name}.{what}") for what in ("partial", "retired"))
    for left in (partial, retired):
        shutil.rmtree(left, ignore_errors=True)
    shutil.copytree(index, partial, copy_function=link_or_copy)
    if earlier.exists():
        earlier.rename(retired)
    partial.rename(earlier)
    shutil.rmtree(retired, ignore_errors=True)


def _track(project: Path) -> None:
    done = subprocess.run(
        module_command("dvc", "add", "--quiet", str(EARLIER)),
        cwd=project,
        env=program_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BadInput(f"`dvc add {EARLIER}` failed: {done.stderr.strip()}")
