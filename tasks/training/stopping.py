"""SIGTERM as a wish: finish the step, save, end."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

EXIT_STATUS = 128 + signal.SIGTERM
"""What a shell shows of a process that SIGTERM ended."""


class Stopped(SystemExit):
    """Training was asked to stop and has saved where it is; ends the process with `EXIT_STATUS`."""

    def __init__(self, step: int) -> None:
        super().__init__(EXIT_STATUS)
        self.step = step


class StopRequest:
    """While the block runs SIGTERM only sets ``made``; outside the main thread there is nothing to set."""

    def __init__(self) -> None:
        self.made = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.made = True
