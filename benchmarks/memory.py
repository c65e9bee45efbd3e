"""The most memory that this process and all it started held, looked at once a second."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

HOLDERS: tuple[str, ...] = ("java", "driver", "workers", "all")


@contextmanager
def watched_memory(seconds: float = 1.0) -> Iterator[dict[str, float]]:
    """MiB (proportional set size) at most of Java, of this process, of Spark's Python workers, and of all
    together; filled in while the block runs."""
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
                now[holder] += process.memory_full_info().pss / 2**20
            except psutil.Error:
                continue
        now["all"] = sum(now.values())
        for holder, held in now.items():
            peaks[holder] = max(peaks[holder], held)
