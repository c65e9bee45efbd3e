"""What an installation does once so that the first run need not: compiled loops, Java's class archive,
Prefect's database."""

from __future__ import annotations

import os
import sys

from flows.project import RESOURCES, BadInput, find_project
from flows.servers import ServerFailed, prefect_for_a_run
from tasks.corpus.compile_loops import compile_loops
from tasks.java_host import warm_up
from tasks.parameters import ParameterError, load_resources
from tasks.spark import is_local
from tasks.stage import StageError


def prepare() -> None:
    """Compile what numba compiles, and start Spark and Prefect's server once, side by side.

    Raises:
        BadInput, ParameterError: if this is no project, or resources.yaml is not valid.
        StageError: if there is no Java, or Spark does not start.
        ServerFailed: if Prefect's server does not.
    """
    project = find_project()
    os.chdir(project)
    resources = load_resources(project / RESOURCES)
    with prefect_for_a_run(project / resources.work) as ready:
        compile_loops()
        if is_local(resources):
            warm_up(resources)
        ready()


if __name__ == "__main__":
    try:
        prepare()
    except (BadInput, ParameterError, ServerFailed, StageError) as error:
        sys.exit(f"warning: the first run will take longer: {error}")
