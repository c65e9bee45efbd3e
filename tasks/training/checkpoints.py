"""Checkpoints that a kill, a full disk or a bad disk cannot take away.

One directory for each fingerprint, ``work/checkpoints/<stage>/<fingerprint>/``, holds ``step-00001000/`` and
so on, each with ``weights.safetensors``, ``state.pt`` and ``manifest.json``, which lists the checksum of
every file. A checkpoint is written beside its place, brought to the disk, and renamed.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import hashlib
import inspect
import json
import logging
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from tasks.stage import StageError
from tasks.training.fingerprint import Fingerprint

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger("gristmill")

WEIGHTS = "weights.safetensors"
STATE = "state.pt"
MANIFEST = "manifest.json"
FINISHED = "finished"
REACHED = "reached"
LOCK = "lock"

P = ParamSpec("P")
R = TypeVar("R")


class CheckpointError(StageError):
    """Checkpoints that cannot be gone on from: all damaged, of another run, or in use."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds: weights by name, and a state of plain values and tensors."""

    step: int
    weights: dict[str, Tensor]
    state: dict[str, Any]


class CheckpointDirectory:
    """The checkpoints of one training run; as a context manager it holds the lock that keeps others out."""

    def __init__(self, work: Path, fingerprint: Fingerprint, keep: int = 2) -> None:
        self.path = work / "checkpoints" / fingerprint.stage / fingerprint.digest
        self.fingerprint = fingerprint
        self.keep = keep
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Take the lock and clear what a killed writer left.

        Raises:
            CheckpointError: if another process trains in this directory.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = _take_lock(self.path)
        if self._lock is None:
            raise CheckpointError(
                f"{self.path} is in use by another training process. Wait until it ends, or end it."
            )
        for partial in self.path.glob(".*.partial"):
            shutil.rmtree(partial)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, whole or not at all, then drop all but the newest ``keep``.

        Raises:
            OSError: if it cannot be written, the disk being full for instance; the older ones are intact.
        """
        target = self.path / _name(checkpoint.step)
        partial = self.path / f".{target.name}.partial"
        self._check_space(checkpoint)
        try:
            partial.mkdir()
            _write_checkpoint(partial, checkpoint, self.fingerprint)
            if target.exists():  # a damaged one, whose steps were replayed
                _remove(target)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        _sync(self.path)
        for old in list(_checkpoints(self.path).values())[: -self.keep]:
            _remove(old)

    def load_newest(self) -> Checkpoint | None:
        """The newest checkpoint that verifies, or None where there is none at all.

        Raises:
            CheckpointError: if there are checkpoints but each is damaged, or if it is of another run.
        """
        complaints = []
        for step, path in reversed(_checkpoints(self.path).items()):
            try:
                manifest = _verify(path)
            except _Damage as damage:
                complaints.append(f"{path}: {damage}")
                log.warning("checkpoint %s is damaged: %s", path, damage)
                continue
            self._check_fingerprint(path, manifest["fingerprint"])
            return _read_checkpoint(path, step)
        if complaints:
            raise CheckpointError(
                "no checkpoint verifies, and training does not start over by itself:\n  "
                + "\n  ".join(complaints)
                + f"\nRemove {self.path} to train from the start."
            )
        return None

    def note_reached(self, step: int) -> None:
        """Remember, for the log of a later resume, how far training got; need not survive a power cut."""
        (self.path / REACHED).write_text(str(step), "utf-8")

    def reached(self) -> int:
        """The last step noted; 0 if none was."""
        noted = self.path / REACHED
        text = noted.read_text("utf-8") if noted.exists() else ""
        return int(text) if text.isdecimal() else 0

    def mark_finished(self) -> None:
        """Training is over: once the stage's output stands, these checkpoints have served."""
        (self.path / FINISHED).touch()

    def others(self) -> list[str]:
        """For each other run of this stage that left checkpoints, its name and what differs."""
        found = []
        for manifest in sorted(self.path.parent.glob(f"*/step-*/{MANIFEST}")):
            run = manifest.parent.parent
            if run != self.path:
                try:
                    parts = _verify(manifest.parent)["fingerprint"]
                except _Damage:
                    continue
                found.append(f"{run.name} (another {', '.join(self.fingerprint.differences(parts))})")
        return sorted(set(found))

    def _check_fingerprint(self, path: Path, parts: dict[str, str]) -> None:
        differences = self.fingerprint.differences(parts)
        if differences:
            raise CheckpointError(
                f"{path} belongs to another run: its {', '.join(differences)} differ from this run's. "
                f"Remove {self.path} to train from the start."
            )

    def _check_space(self, checkpoint: Checkpoint) -> None:
        # Everything of size in a checkpoint is a tensor; what else it holds fits the margin.
        needed = int(1.05 * _bytes([checkpoint.weights, checkpoint.state])) + 2**20
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise OSError(
                errno.ENOSPC,
                f"a checkpoint needs {needed / 2**20:.0f} MiB, {free / 2**20:.0f} MiB are free",
                str(self.path),
            )


def discard_when_published(stage: Callable[P, R]) -> Callable[P, R]:
    """Around a ``@stage``: when its output stands, remove the checkpoints of its finished runs.

    Between the two a kill does no harm: the next run begins at the last step, publishes again and removes.
    """
    signature = inspect.signature(stage)

    @functools.wraps(stage)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        report = stage(*args, **kwargs)
        resources = signature.bind(*args, **kwargs).arguments["resources"]
        for mark in (resources.work / "checkpoints" / stage.__name__).glob(f"*/{FINISHED}"):
            lock = _take_lock(mark.parent)
            if lock is not None:
                for path in _checkpoints(mark.parent).values():
                    _remove(path)
                shutil.rmtree(mark.parent)
                os.close(lock)
        return report

    return wrapper


class _Damage(Exception):
    """What is wrong with the files of one checkpoint."""


def _name(step: int) -> str:
    return f"step-{step:08d}"


def _checkpoints(directory: Path) -> dict[int, Path]:
    """The checkpoints in a directory, sound or not, by step and in its order."""
    names = (path.name for path in directory.iterdir())
    steps = sorted(int(name[5:]) for name in names if re.fullmatch(r"step-\d{8,}", name))
    return {step: directory / _name(step) for step in steps}


def _take_lock(directory: Path) -> int | None:
    descriptor = os.open(directory / LOCK, os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _write_checkpoint(directory: Path, checkpoint: Checkpoint, fingerprint: Fingerprint) -> None:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(checkpoint.weights, directory / WEIGHTS)
        torch.save(checkpoint.state, directory / STATE)
    except (SafetensorError, RuntimeError) as error:
        # Both libraries hide the operating system's error in one of their own.
        full = "No space left" in str(error) or shutil.disk_usage(directory).free < 2**16
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error), str(directory)) from error
    manifest = {
        "step": checkpoint.step,
        "fingerprint": asdict(fingerprint),
        "files": {name: _describe(directory / name) for name in (WEIGHTS, STATE)},
    }
    content = {**manifest, "sha256": _digest_of(manifest)}
    (directory / MANIFEST).write_text(json.dumps(content, indent=1, sort_keys=True), "utf-8")
    for name in (WEIGHTS, STATE, MANIFEST):
        _sync(directory / name)
    _sync(directory)


def _read_checkpoint(directory: Path, step: int) -> Checkpoint:
    import torch
    from safetensors.torch import load_file

    return Checkpoint(
        step=step,
        weights=load_file(directory / WEIGHTS),
        state=torch.load(directory / STATE, map_location="cpu", weights_only=True),
    )


def _verify(directory: Path) -> dict[str, Any]:
    """The manifest of a checkpoint whose every file is as it was written."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text("utf-8"))
        claimed = manifest.pop("sha256")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise _Damage(f"{MANIFEST} cannot be read ({error})") from None
    if claimed != _digest_of(manifest):
        raise _Damage(f"{MANIFEST} does not match its own checksum")
    if _name(manifest["step"]) != directory.name:
        raise _Damage(f"{MANIFEST} is that of step {manifest['step']}")
    for name, expected in manifest["files"].items():
        path = directory / name
        if not path.is_file():
            raise _Damage(f"{name} is missing")
        found = _describe(path)
        if found["bytes"] != expected["bytes"]:
            raise _Damage(f"{name} has {found['bytes']} bytes, not {expected['bytes']}")
        if found != expected:
            raise _Damage(f"{name} does not match its checksum")
    return manifest


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as content:
        return {
            "bytes": path.stat().st_size,
            "sha256": hashlib.file_digest(content, "sha256").hexdigest(),
        }


def _digest_of(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _bytes(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_bytes(inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return sum(_bytes(inner) for inner in value)
    return getattr(value, "nbytes", 64)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(checkpoint: Path) -> None:
    """Remove a checkpoint under a name that no reader takes for one, should a kill stop it half-way."""
    retired = checkpoint.parent / f".{checkpoint.name}.retired.partial"
    checkpoint.rename(retired)
    shutil.rmtree(retired)
