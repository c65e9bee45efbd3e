"""The data path of the sample, as commands, on different numbers of Spark partitions."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tasks.code import ROOT

STAGES = ("collect", "score", "clean", "dedup", "mix", "profile", "snapshot", "encode")
COMMANDS = {
    name: stage["cmd"].split()
    for name, stage in yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"].items()
}


def layers(folder: Path, partitions: int) -> dict[str, str]:
    """Run every data stage on that many cores and partitions; the SHA-256 of every file it made."""
    environment = os.environ | {
        "GRISTMILL_SPARK__MASTER": f"local[{partitions}]",
        "GRISTMILL_SPARK__PARTITIONS": str(partitions),
        "GRISTMILL_WORK": str(folder / "work"),
        "GRISTMILL_RUN_DIRECTORY": str(folder / "spool"),
    }
    for stage in STAGES:
        module = COMMANDS[stage][1:3]
        paths = [
            folder / path.removeprefix("data/") if path.startswith("data/") else ROOT / path
            for path in COMMANDS[stage][3:]
        ]
        command = [sys.executable, *module, *paths, "--reports", folder / "reports"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
    made = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    made = [path for path in made if path.relative_to(folder).parts[0] not in ("work", "spool")]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in made}


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_layers_are_the_same_bytes_on_1_2_and_7_partitions(tmp_path: Path) -> None:
    one, two, seven = (layers(tmp_path / str(n), n) for n in (1, 2, 7))
    assert "tokens/train-00000.bin" in one
    assert one == two == seven
