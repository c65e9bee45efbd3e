"""The most memory that this process and all it started held, looked at once a second."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

HOLDERS: tuple[str, ...] = ("java", "driver", "workers", "all", "unmapped")


@contextmanager
def watched_memory(seconds: float = 1.0) -> Iterator[dict[str, float]]:
    """MiB (proportional set size) at most, filled in while the block runs.

    Of Java, of this process, of Spark's Python workers, of all together, and of all without pages of mapped
    files, which the system takes back when memory is short.
    """
    peaks = dict.fromkeys(HOLDERS, 0.0)
    stop = threading.Event()
    watch = threading.Thread(target=_watch, args=(peaks, stop, seconds))
    watch.start()
    try:
        yield peaks
    finally:
        stop.set()
        watch.join()


def _watch(peaks: dict[str, float], stop: threading.Event, seconds: float) -> None:
    me = psutil.Process(os.getpid())
    while not stop.wait(seconds):
        now = dict.fromkeys(HOLDERS, 0.0)
        for process in [me, *me.children(recursive=True)]:
            try:
                holder = "driver" if process == me else "java" if process.name() == "java" else "workers"
                size = _proportional_sizes(process.pid)
            except (psutil.Error, OSError):
                continue
            now[holder] += size["Pss"]
            now["all"] += size["Pss"]
            now["unmapped"] += size["Pss"] - size["Pss_File"]
        for holder, held in now.items():
            peaks[holder] = max(peaks[holder], held)


def _proportional_sizes(pid: int) -> dict[str, float]:
    """MiB by kind of page, in the words of proc(5)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name: int(value.split()[0]) / 1024 for name, _, value in (line.partition(":") for line in lines)}
