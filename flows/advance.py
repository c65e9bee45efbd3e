"""`gristmill advance`: the next run goes on from this one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from flows.project import LOCK, BadInput, module_command, program_environment
from tasks.links import link_or_copy
from tasks.parameters import ParameterError, read_yaml

WATERMARKS = "watermarks.json"
EARLIER = Path("earlier") / "index"


def advance(project: Path) -> list[str]:
    """Copy what was collected and what was kept to where the next run reads it; returns what changed.

    ``watermarks.json`` takes that of ``data/raw``, ``earlier/index`` the index of ``data/unique``, which DVC
    then tracks. Done twice it changes nothing the second time.

    Raises:
        BadInput: the corpus has not been made, or its stages have not all run since it was collected, or DVC
            fails. Nothing is changed then.
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
    marks = project / WATERMARKS
    changed = []
    if (
        marks.exists()
        and marks.read_bytes() == collected.read_bytes()
        and not _differ(index, project / EARLIER)
    ):
        return changed
    _refuse_half_a_run(project)
    if not marks.exists() or marks.read_bytes() != collected.read_bytes():
        partial = marks.with_name(f".{marks.name}.partial")
        shutil.copy(collected, partial)
        partial.replace(marks)
        changed.append(WATERMARKS)
    if _differ(index, project / EARLIER):
        _replace(index, project / EARLIER)
        _track(project)
        changed += [f"{EARLIER}.dvc", str(EARLIER.with_name(".gitignore"))]
    return changed


def _refuse_half_a_run(project: Path) -> None:
    """What was collected must be what the index was made of, through all stages between.

    Else the next run would begin behind documents that no index has, and nobody would ever look at them. The
    lock has, for every stage, the hashes of what it read and of what it wrote.

    Raises:
        BadInput: naming the first output that a later stage has not read as it is now.
    """
    path = project / LOCK
    if not path.exists():  # stages that ran without DVC record nothing
        return
    try:
        stages = (read_yaml(path).get("stages") or {}).values()
    except ParameterError as error:
        raise BadInput(str(error)) from None
    made = {out["path"]: (stage, out.get("md5")) for stage in stages for out in stage.get("outs", [])}
    ahead, seen = ["data/unique"], set()
    while ahead:
        output = ahead.pop()
        if output in seen or output not in made:
            continue
        seen.add(output)
        for dep in made[output][0].get("deps", []):
            if dep["path"] in made and made[dep["path"]][1] != dep.get("md5"):
                raise BadInput(
                    f"{output} was made before {dep['path']} became what it is now, so the index lacks what "
                    "was collected since: `gristmill run corpus` makes both, then go on"
                )
            ahead.append(dep["path"])


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
