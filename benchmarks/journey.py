"""How long the whole journey takes, and how much memory: first, again, and with other PPO parameters.

    python -m benchmarks.journey

Works on a clean clone of the current commit in a temporary folder; what is installed is used as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.machine import describe_machine

ROOT = Path(__file__).resolve().parent.parent
STAGE_LINE = re.compile(r"^  (\w+) +(ran|restored|unchanged) +([\d.]+) s$", re.MULTILINE)
MEMORY_SECONDS = 1.0
"""Between two looks at the memory; each costs some milliseconds of processor time."""


@dataclass(frozen=True)
class Measured:
    """A run: what was typed, seconds, the most memory that all its processes held, each stage's part."""

    command: str
    seconds: float
    peak_gib: float
    stages: dict[str, tuple[str, float]]


def main() -> None:
    """Run the journey three times and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where the clone goes (default: a temporary folder)")
    arguments = parser.parse_args()
    print(describe_machine("prefect", "dvc", "pyspark", "torch", "pytorch-lightning", "mlflow"), flush=True)
    with tempfile.TemporaryDirectory(prefix="gristmill-", dir=arguments.folder) as place:
        clone = Path(place) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=clone, text=True).strip()
        print(f"commit    {commit}\n", flush=True)
        runs = [
            _measured(clone),
            _measured(clone),
            _measured(clone, "--set", "ppo.seed=2", "--name", "other"),
        ]
        _print_runs(runs)
        _print_stages(runs[0], json.loads((clone / "reports" / "assess.json").read_text("utf-8")))


def _measured(clone: Path, *arguments: str) -> Measured:
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "run", *arguments],
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    peaks: list[float] = [0.0]
    watcher = threading.Thread(target=_watch, args=(process.pid, peaks), daemon=True)
    watcher.start()
    said, _ = process.communicate()
    seconds = time.monotonic() - started
    if process.returncode != 0:
        sys.exit(f"gristmill run {' '.join(arguments)} ended with status {process.returncode}:\n{said}")
    stages = {name: (what, float(took)) for name, what, took in STAGE_LINE.findall(said)}
    return Measured(" ".join(["gristmill run", *arguments]), seconds, max(peaks), stages)


def _watch(pid: int, peaks: list[float]) -> None:
    """Append the proportional set size of a process and all it started, in GiB, while it lives."""
    while psutil.pid_exists(pid):
        total = 0
        try:
            root = psutil.Process(pid)
            for process in [root, *root.children(recursive=True)]:
                try:
                    total += process.memory_full_info().pss
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    continue
        except psutil.NoSuchProcess:
            return
        peaks.append(total / 2**30)
        time.sleep(MEMORY_SECONDS)


def _print_runs(runs: list[Measured]) -> None:
    width = max(len(run.command) for run in runs)
    print(f"{'':<{width}}  seconds  of the first  peak GiB  stages that ran")
    for run in runs:
        ran = [name for name, (what, _) in run.stages.items() if what == "ran"]
        named = "all" if len(ran) == len(run.stages) > 0 else ", ".join(ran) or "none"
        share = run.seconds / runs[0].seconds
        print(f"{run.command:<{width}}  {run.seconds:7.0f}  {share:12.2f}  {run.peak_gib:8.1f}  {named}")


def _print_stages(run: Measured, assessment: dict) -> None:
    print("\nstage      seconds")
    for name, (_, seconds) in run.stages.items():
        print(f"{name:<9}  {seconds:7.1f}")
    print(f"{'between':<9}  {run.seconds - sum(took for _, took in run.stages.values()):7.1f}")
    print("\nchecks of the report")
    for check in assessment["checks"].values():
        verdict = "passed" if check["passed"] else "failed"
        bound = f"{check['relation']} {check['bound']:g}"
        print(f"  {check['statement']}: {check['value']:.3g} ({bound}), {verdict}")
    kl = assessment["rewards"]["kl_per_token"]["value"]
    print(f"  KL of the aligned to the tuned model, nats per token: {kl:.3g}")


if __name__ == "__main__":
    main()
