"""A command in a session of its own, of which nothing is left behind, however the caller ends."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL."""


class OutOfTime(Exception):
    """The command took longer than it may."""


@contextmanager
def process_group(
    command: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str],
    output: int | IO[bytes] = subprocess.PIPE,
    errors: int | IO[bytes] = subprocess.STDOUT,
    grace: float = GRACE_SECONDS,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command; at the end of the block every process of its session is stopped.

    First by SIGTERM, after ``grace`` seconds by SIGKILL. If this process is itself killed so that the end
    of the block is never reached, a guard sees the pipe to it close and does the same.
    """
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )
    guard = _guard(process.pid, grace)
    try:
        yield process
    finally:
        _stop(process, grace)  # if a second signal cuts this short, the guard's pipe closes and it takes over
        guard.kill()
        guard.wait()
        _close(guard.stdin)
        _close(process.stdout)


def end_on_sigterm() -> None:
    """Let SIGTERM end this process as Ctrl-C does: through every `finally` on the way out."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def lines(process: subprocess.Popen[bytes], timeout: float | None = None) -> Iterator[str]:
    """The lines that a command writes, as it writes them, until it ends.

    Of a line that overwrites itself (a progress bar's carriage returns), the last state counts. A child that
    outlives the command and holds the pipe open is not waited for.

    Raises:
        OutOfTime: after ``timeout`` seconds.
    """
    assert process.stdout is not None, "the command's output goes elsewhere"
    deadline = None if timeout is None else time.monotonic() + timeout
    descriptor = process.stdout.fileno()
    os.set_blocking(descriptor, False)
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            ready = selector.select(0 if ended else 0.5)
            chunk = os.read(descriptor, 65536) if ready else b""
            *whole, pending = (pending + chunk).split(b"\n")
            pending = pending.rsplit(b"\r", 1)[-1] if b"\r" in pending.rstrip(b"\r") else pending
            for line in whole:
                yield _text(line)
            if not chunk and (ended or ready):
                break
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTime(f"it took longer than {timeout:g} s")
    if pending.strip():
        yield _text(pending)
    process.wait()


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").rsplit(b"\r", 1)[-1].decode("utf-8", "replace").rstrip()


def _guard(leader: int, grace: float) -> subprocess.Popen[bytes]:
    script = f"read -r _; kill -TERM -{leader}; sleep {grace:g}; kill -KILL -{leader}"
    return subprocess.Popen(
        ["/bin/sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        pipe.close()


def _stop(process: subprocess.Popen[bytes], grace: float) -> None:
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, GRACE_SECONDS)):
        deadline = time.monotonic() + patience
        first = True
        while members := _members(process):
            if first or number == signal.SIGKILL:  # a fork may have slipped through the first round
                for member in members:
                    _send(member, number)
                first = False
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
    process.wait(timeout=GRACE_SECONDS)


def _members(process: subprocess.Popen[bytes]) -> list[int]:
    """Living processes of the session, those in other groups (Spark's workers) included."""
    process.poll()
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == process.pid and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except (ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            continue
    return found


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
