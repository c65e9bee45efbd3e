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
        content[section] = _merged(content.get(section), recorded)
    out = io.StringIO()
    _yaml("rt").dump(content, out)
    return out.getvalue()


def leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Values under their dotted names; the objects of a list have its name and their number."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{name}.{key}")
    elif isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{name}[{number}]")
    else:
        yield name, value


def _merged(given: Any, recorded: Any) -> Any:
    """The recorded value; what is equal in the given one stays as it stands, with its comments."""
    if isinstance(given, dict) and isinstance(recorded, dict):
        for key in [key for key in given if key not in recorded]:
            del given[key]
        for key, value in recorded.items():
            given[key] = _merged(given.get(key), value)
        return given
    if isinstance(given, list) and isinstance(recorded, list) and len(given) == len(recorded):
        for number, value in enumerate(recorded):
            given[number] = _merged(given[number], value)
        return given
    same = given == recorded and type(given) is not bool and type(recorded) is not bool
    return given if same else recorded


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
    from ruamel.yaml.representer import RoundTripRepresenter

    class Representer(RoundTripRepresenter):
        """Writes null as a person does, not as nothing."""

    null = "tag:yaml.org,2002:null"
    Representer.add_representer(type(None), lambda self, _: self.represent_scalar(null, "null"))
    yaml = YAML(typ=kind)
    if kind == "rt":
        yaml.Representer = Representer
        yaml.preserve_quotes = True
        yaml.width = 4096
        yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml
