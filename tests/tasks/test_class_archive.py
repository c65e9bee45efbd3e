from __future__ import annotations

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
    assert archive.stands
    assert archive.options() == ""
