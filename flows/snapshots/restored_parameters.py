"""The parameters that a lock records against those of ``params.yaml``."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flows.project import PARAMETERS, BadInput


def differing_parameters(path: Path, stages: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What differs between the sections that stages ran with and those of the file, by dotted name.

    A key that one of the two leaves out is `None` there.
    """
    content = _load(path, "safe") or {}
    found = {}
    for section, recorded in _sections(stages):
        old, new = dict(leaves(recorded, section)), dict(leaves(content.get(section), section))
        names = sorted(old.keys() | new.keys())
        found |= {name: (old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)}
    return found


def with_sections(path: Path, stages: Mapping[str, Any]) -> str:
    """The file's content with the sections that stages ran with; the rest keeps its comments."""
    content = _load(path, "rt")
    for section, recorded in _sections(stages):
        if content.get(section) != recorded:
            content[section] = recorded
    out = io.StringIO()
    _yaml("rt").dump(content, out)
    return out.getvalue()


def leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Values under their dotted names; a list is a value."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{name}.{key}")
    else:
        yield name, value


def _sections(stages: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for stage in stages.values():
        yield from (stage.get("params") or {}).get(PARAMETERS, {}).items()


def _load(path: Path, kind: str) -> Any:
    from ruamel.yaml.error import YAMLError

    try:
        return _yaml(kind).load(path.read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist") from None
    except YAMLError as error:
        raise BadInput(f"{path} is not valid YAML: {error}") from None


def _yaml(kind: str) -> Any:
    from ruamel.yaml import YAML

    yaml = YAML(typ=kind)
    if kind == "rt":
        yaml.preserve_quotes = True
        yaml.width = 4096
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml
