"""Refuse a mistake before anything starts: parameters against the stages' models, resources, sections."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import get_type_hints

from flows.graph import Graph, read_graph
from flows.project import PARAMETERS, RESOURCES, BadInput, program_environment
from tasks.code import stage_module
from tasks.parameters import ParameterError, load_resources, load_section, nearest, read_yaml
from tasks.resources import Resources

CRAWL = "crawl"
"""A section that no stage reads, but `gristmill crawl`, which validates it."""


def check_parameters(
    project: Path,
    *,
    graph: Graph | None = None,
    params: Path | None = None,
    stages: Iterable[str] | None = None,
) -> Resources:
    """Validate ``params.yaml`` and ``resources.yaml`` of a project; returns the resources.

    Every section is held against the ``params`` annotation of its stage's function, in a process of its own:
    it takes the project's own code, and leaves the libraries of the stages out of this process.

    Args:
        graph: the project's graph, where it has been read already.
        params: another file to validate in place of the project's.
        stages: those whose sections are to be validated (default: all); the others ran with what they have.

    Raises:
        BadInput: with every complaint, each naming the file, the key and what would be right.
    """
    graph = graph or read_graph(project)
    params = params or project / PARAMETERS
    try:
        resources = load_resources(project / RESOURCES)
        sections = read_yaml(params)
    except ParameterError as error:
        raise BadInput(str(error)) from None
    known = sorted({section.split(".")[0] for stage in graph.stages.values() for section in stage.sections})
    known.append(CRAWL)
    complaints = [
        f"{params}: `{section}` is not a section of any stage; {nearest(str(section), known)}"
        for section in sections
        if section not in known
    ]
    complaints += _check_sections(project, graph, params, list(graph.stages if stages is None else stages))
    if complaints:
        raise BadInput("\n".join(complaints))
    return resources


def _check_sections(project: Path, graph: Graph, params: Path, stages: list[str]) -> list[str]:
    modules = {}
    for name in stages:
        try:
            modules[name] = stage_module(graph.stages[name].command)
        except ValueError as error:
            return [f"{project / 'dvc.yaml'}: stage {name}: {error}"]
    if not modules:
        return []
    answer = subprocess.run(
        [sys.executable, "-m", "flows.checks", str(params)],
        input=json.dumps(modules),
        cwd=project,
        env=program_environment(),
        capture_output=True,
        text=True,
    )
    if answer.returncode != 0:
        return [f"the parameters could not be checked:\n{answer.stderr.strip()}"]
    return json.loads(answer.stdout.splitlines()[-1])


def _complaints(params: Path, modules: dict[str, str]) -> list[str]:
    complaints = []
    for name, module in modules.items():
        try:
            function = getattr(importlib.import_module(module), name)
            model = get_type_hints(function)["params"]
        except (ImportError, SyntaxError) as error:
            complaints.append(f"stage {name}: {module} cannot be imported: {error}")
        except (AttributeError, KeyError):
            complaints.append(f"stage {name}: {module} has no function `{name}` with a parameter `params`")
        else:
            try:
                load_section(params, name, model)
            except ParameterError as error:
                complaints.append(str(error))
    return complaints


if __name__ == "__main__":
    print(json.dumps(_complaints(Path(sys.argv[1]), json.load(sys.stdin))))
