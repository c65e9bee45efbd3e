"""`gristmill doctor`: what this machine has and lacks, each with how to mend it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flows.project import RESOURCES
from flows.servers import port_holder, running_ui
from tasks.parameters import ParameterError, load_resources
from tasks.resources import Resources
from tasks.spark import MINIMUM_JAVA, java_home, java_version
from tasks.stage import StageError

MINIMUM_PYTHON = (3, 11)
FREE_GIB_FAIL, FREE_GIB_WARN = 1.0, 5.0
MEMORY_GIB_WARN = 6.0
"""What the default run may take."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    verdict: Literal["ok", "warn", "fail"]
    what: str
    found: str
    mend: str = ""

    def __str__(self) -> str:
        return f"{self.verdict:<4}  {self.what:<9}  {self.found}" + (f": {self.mend}" if self.mend else "")


def examine(project: Path) -> list[Finding]:
    """Look at everything that a run needs; a ``fail`` is what no run can do without."""
    findings = [_python(), _packages()]
    try:
        resources = load_resources(project / RESOURCES)
    except ParameterError as error:
        findings.append(Finding("fail", "resources", str(error)))
        resources = Resources.model_validate({})
    work = project / resources.work
    findings += [
        _java(),
        *_ports(resources, work),
        _disk(project),
        _memory(),
        _devices(),
        _git(project),
        _dvc(project),
    ]
    return findings


def _python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < MINIMUM_PYTHON:
        return Finding("fail", "python", found, "3.11 or newer is needed: `make install PYTHON=python3.11`")
    return Finding("ok", "python", f"{found} ({sys.executable})")


def _packages() -> Finding:
    """Each requirement of this project's own metadata, without extras, at a version that fits."""
    from packaging.requirements import Requirement

    mend = "`make install`"
    try:
        required = [Requirement(text) for text in importlib.metadata.requires("gristmill") or []]
    except importlib.metadata.PackageNotFoundError:
        return Finding("fail", "packages", "gristmill is not installed here", mend)
    wrong = []
    for item in required:
        if item.marker is not None and not item.marker.evaluate({"extra": ""}):
            continue
        try:
            version = importlib.metadata.version(item.name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{item.name} is missing")
            continue
        if not item.specifier.contains(version, prereleases=True):
            wrong.append(f"{item.name} is {version}, not {item.specifier}")
    if wrong:
        return Finding("fail", "packages", "; ".join(wrong), mend)
    return Finding("ok", "packages", f"{len(required)} requirements are installed")


def _java() -> Finding:
    try:
        home = java_home()
    except StageError as error:
        return Finding("fail", "java", str(error))
    version = java_version(home)
    if version is None:
        return Finding("fail", "java", f"{home} does not run", f"install Java {MINIMUM_JAVA} or newer")
    return Finding("ok", "java", f"{version} ({home})")


def _ports(resources: Resources, work: Path) -> Iterator[Finding]:
    host = resources.servers.host
    if (url := running_ui(work)) is not None:
        yield Finding("ok", "ports", f"`gristmill ui` is running at {url.removesuffix('/api')}")
        return
    for key in ("prefect_port", "mlflow_port"):
        port = getattr(resources.servers, key)
        holder = port_holder(host, port)
        if holder is None:
            yield Finding("ok", "port", f"{port} is free ({key})")
        else:
            mend = f"`gristmill ui` needs it: end that, or set servers.{key} in resources.yaml to another"
            yield Finding("warn", "port", f"{port} is taken by {holder}", mend)


def _disk(project: Path) -> Finding:
    free = shutil.disk_usage(project).free / 2**30
    found = f"{free:.1f} GiB free at {project}"
    if free < FREE_GIB_WARN:
        verdict = "fail" if free < FREE_GIB_FAIL else "warn"
        mend = f"{FREE_GIB_WARN:g} GiB are advised; `dvc gc --workspace --all-branches` frees some"
        return Finding(verdict, "disk", found, mend)
    return Finding("ok", "disk", found)


def _memory() -> Finding:
    import psutil

    memory = psutil.virtual_memory()
    available, total = memory.available / 2**30, memory.total / 2**30
    found = f"{available:.1f} of {total:.1f} GiB available"
    if available < MEMORY_GIB_WARN:
        return Finding(
            "warn", "memory", found, f"the default run may take {MEMORY_GIB_WARN:g} GiB: end other programs"
        )
    return Finding("ok", "memory", found)


def _devices() -> Finding:
    import torch

    from tasks.training.precision import resolve_precision

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    processors = len(os.sched_getaffinity(0))
    found = ", ".join(names) or f"{processors} CPU cores, no GPU"
    return Finding("ok", "devices", f"{found}; trains in {resolve_precision('auto', device)}")


def _git(project: Path) -> Finding:
    if shutil.which("git") is None:
        return Finding("fail", "git", "is not installed", "install it: DVC and the records of runs need it")
    if _run(project, "git", "rev-parse", "--verify", "HEAD") is None:
        mend = "runs with changed parameters (--set) need one: `git init`, `git add`, `git commit`"
        return Finding("warn", "git", "the project is in no repository with a commit", mend)
    identity = _run(project, "git", "var", "GIT_COMMITTER_IDENT")
    if identity is None:
        mend = "runs are committed as Gristmill; `git config --global user.name` and `user.email` set yours"
        return Finding("warn", "git", "does not know who you are", mend)
    return Finding("ok", "git", re.sub(r" \d+ [+-]\d+$", "", identity))


def _dvc(project: Path) -> Finding:
    if not (project / ".dvc").is_dir():
        return Finding(
            "fail", "dvc", f"{project} is not initialised", "`dvc init` (or `dvc init --no-scm` without git)"
        )
    return Finding("ok", "dvc", importlib.metadata.version("dvc"))


def _run(folder: Path, *command: str) -> str | None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
