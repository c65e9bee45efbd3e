from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.class_archive import ClassArchive
from tasks.resources import Resources
from tasks.spark import archive_directory, java_home

SCRIPT = """
from pathlib import Path
from tasks.resources import Resources, SparkResources
from tasks import spark as module
module.archive_directory = lambda resources: resources.work / "java"
from tasks.spark import spark_session
with spark_session("test", Resources(work=Path("work"), spark=SparkResources(master="local[1]"))) as spark:
    print(spark.range(5).count(), spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
          .getInputArguments().toString())
"""


def session(folder: Path) -> str:
    shown = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=folder,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("5 ")
    return shown.stdout


@pytest.mark.slow
def test_the_first_session_writes_the_archive_and_the_next_one_uses_it(tmp_path: Path) -> None:
    assert "ArchiveClassesAtExit" in session(tmp_path)
    (archive,) = (tmp_path / "work" / "java").glob("*.jsa")
    assert not list((tmp_path / "work" / "java").glob("*.partial"))
    assert archive.stat().st_size > 2**20
    assert f"SharedArchiveFile={archive}" in session(tmp_path)


def test_the_archive_lies_beside_the_packages_it_was_made_of(tmp_path: Path) -> None:
    resources = Resources(work=tmp_path / "work")
    assert archive_directory(resources) == Path(sys.prefix) / "java"


def test_where_the_packages_cannot_be_written_it_lies_in_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert archive_directory(Resources(work=tmp_path / "work")) == tmp_path / "work" / "java"


def test_a_damaged_archive_is_ignored(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "work" / "java", java_home())
    archive._path.parent.mkdir(parents=True)
    archive._path.write_bytes(b"no archive" * 1000)
    assert "SharedArchiveFile" in session(tmp_path)


def test_a_java_that_writes_no_archive_is_asked_once(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, java_home())
    assert "ArchiveClassesAtExit" in archive.options()
    archive._path.touch()
    archive = ClassArchive(tmp_path, java_home())
    assert not archive.writes
    assert archive.options() == ""


class Ended:
    """A Java that has ended with a status, and pyspark's gateway to it."""

    def __init__(self, status: int) -> None:
        self.proc = self
        self.stdin = io.BytesIO()
        self.returncode = status

    def shutdown(self) -> None: ...

    def wait(self, timeout: float | None = None) -> int:
        return self.returncode


def test_a_java_that_was_killed_while_it_wrote_leaves_no_archive(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, java_home())
    archive._partial.write_bytes(b"half")
    archive.keep(Ended(-9))
    assert list(tmp_path.iterdir()) == []
    assert ClassArchive(tmp_path, java_home()).writes


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path, java_home())
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = archive._path.with_suffix(f".{dead.pid}.partial")
    left.touch()
    archive._partial.touch()
    archive.options()
    assert list(tmp_path.iterdir()) == [archive._partial]
