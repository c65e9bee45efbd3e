"""What an installation does once so that the first run need not: Java's class archive, Prefect's database."""

from __future__ import annotations

import os

from flows.project import RESOURCES, find_project
from flows.servers import prefect_for_a_run
from tasks.java_host import warm_up
from tasks.parameters import load_resources


def prepare() -> None:
    """Start Spark and Prefect's server once, side by side.

    Raises:
        StageError: if there is no Java, or Spark does not start.
        ServerFailed: if Prefect's server does not.
    """
    project = find_project()
    os.chdir(project)
    resources = load_resources(project / RESOURCES)
    with prefect_for_a_run(project / resources.work) as ready:
        warm_up(resources)
        ready()


if __name__ == "__main__":
    prepare()
