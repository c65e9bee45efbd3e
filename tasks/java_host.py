"""A Java that outlives a stage: the Spark stages of a run, one after the other, share one.

Most of a short stage's time is Java getting warm: it loads its classes and interprets what it will later have
compiled. A stage that finds ``PYSPARK_GATEWAY_PORT`` and ``PYSPARK_GATEWAY_SECRET`` in its environment takes
the Java behind that port, as programs under spark-submit do, makes a Spark context there and stops it at its
end. One context at a time: stages that run side by side need a Java each.

    python -m tasks.java_host [resources.yaml]

prints both variables as a line of JSON, and ends with SIGTERM or with its Java.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tasks.parameters import load_resources
from tasks.resources import Resources
from tasks.spark import driver_settings, java_environment, session_settings, spark_session


def host_java(resources: Resources) -> None:
    """Start a Java, say how it is reached, and keep it until this process is told to end.

    Raises:
        StageError: if there is no Java.
    """
    from pyspark import SparkConf
    from pyspark.java_gateway import launch_gateway

    with java_environment(resources) as archive:
        # Some settings only count where Java starts (packages, class paths): it gets those of the stages.
        settings = {**driver_settings(resources, archive), **session_settings(resources)}
        settings = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        gateway = launch_gateway(settings, {"stdout": sys.stderr})  # our output is the line below
    java: Any = gateway.proc
    reached: Any = gateway.gateway_parameters
    variables = {"PYSPARK_GATEWAY_PORT": str(reached.port), "PYSPARK_GATEWAY_SECRET": reached.auth_token}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        print(json.dumps(variables), flush=True)
        while java.poll() is None:
            time.sleep(0.2)
    except KeyboardInterrupt:
        pass
    finally:
        if archive is not None and archive.writes:
            archive.keep(gateway)
        else:
            java.stdin.close()  # Java ends with the pipe to it
            java.wait()


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
    host_java(load_resources(Path(sys.argv[1] if len(sys.argv) > 1 else "resources.yaml")))
