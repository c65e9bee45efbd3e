"""Java's classes as Spark loads them, kept from one session to the next.

Half the time of a short Spark stage is Java loading and checking classes by the thousand. Java (13 and newer)
can write what it loaded to an archive when it ends and map that archive when it starts again: class data
sharing. The archive depends on the Java and the Spark that are installed and on nothing else.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import psutil

JAVA_EXIT_SECONDS = 120


class ClassArchive:
    """The archive of one Java and one Spark, below a directory."""

    def __init__(self, directory: Path, java: Path) -> None:
        import pyspark

        key = f"{java.resolve()}\0{Path(pyspark.__file__).resolve()}\0{pyspark.__version__}"
        name = f"spark-{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"
        self._path = directory.absolute() / f"{name}.jsa"
        self._partial = self._path.with_suffix(f".{os.getpid()}.partial")
        self.writes = not self._path.exists()
        """Whether this session's Java writes the archive: no earlier one left any."""

    def options(self) -> str:
        """What Java is started with: to use the archive, or to write it when it ends."""
        if self.writes:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._remove_what_the_dead_left()
            return f"-Xshare:auto -XX:ArchiveClassesAtExit={self._partial} {_QUIET}"
        if self._path.stat().st_size == 0:
            return ""
        return f"-Xshare:auto -XX:SharedArchiveFile={self._path} {_QUIET}"

    def keep(self, gateway: Any) -> None:
        """End Java, through pyspark's gateway to it, wait for what it writes, and put that in its place."""
        process = gateway.proc
        gateway.shutdown()
        process.stdin.close()
        try:
            process.wait(JAVA_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.returncode != 0:
            self._partial.unlink(missing_ok=True)
            return
        self._partial.touch()  # a Java without an archive of its own classes writes none: ask it once
        self._partial.replace(self._path)

    def _remove_what_the_dead_left(self) -> None:
        for partial in self._path.parent.glob(f"{self._path.stem}.*.partial"):
            if not psutil.pid_exists(int(partial.suffixes[-2].removeprefix("."))):
                partial.unlink(missing_ok=True)


# An archive that does not fit (another class path) is ignored; that is not worth a line in the log.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
