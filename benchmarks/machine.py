"""What a figure was measured on: processor, memory, versions."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil


def describe_machine(*packages: str) -> str:
    """Lines that belong above every table of figures."""
    memory = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0]
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return (
        f"machine   {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB, load {load:.1f}\n"
        f"software  {system}, {versions}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
