"""What a training run's result depends on, as three hashes: its data, its code, its parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel

from tasks.code import code_hash


@dataclass(frozen=True)
class Fingerprint:
    """Two runs with equal fingerprints give equal results, so one may go on from the other's checkpoint."""

    stage: str
    data: str
    code: str
    parameters: str

    @property
    def digest(self) -> str:
        """One short name for all parts."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    def differences(self, other: dict[str, str]) -> list[str]:
        """The names of the parts in which ``other`` is not the same."""
        return [name for name, value in asdict(self).items() if other.get(name) != value]


def fingerprint(stage: str, inputs: Sequence[Path], params: BaseModel) -> Fingerprint:
    """The fingerprint of the training stage ``stage``: the module ``tasks.training.<stage>``.

    ``inputs`` are the files and directories that decide what it learns; ``params`` its parameters with
    every ``auto`` resolved, since what it resolves to decides the arithmetic.
    """
    return Fingerprint(
        stage=stage,
        data=content_hash(inputs),
        code=code_hash(f"tasks.training.{stage}"),
        parameters=hashlib.sha256(
            json.dumps(params.model_dump(mode="json"), sort_keys=True).encode()
        ).hexdigest(),
    )


def content_hash(paths: Sequence[Path]) -> str:
    """SHA-256 over the files, and over the relative names and contents of all files in the directories."""
    digest = hashlib.sha256()
    for root in paths:
        files = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
        for path in files:
            with path.open("rb") as content:
                file_digest = hashlib.file_digest(content, "sha256").hexdigest()
            digest.update(f"{path.relative_to(root).as_posix()}\0{file_digest}\0".encode())
    return digest.hexdigest()
