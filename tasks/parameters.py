"""What a person writes in ``params.yaml`` and ``resources.yaml``, read strictly.

Every mistake is found before any work starts and is answered with the key, what was given, what would be
right and, for a key that does not exist, the nearest one that does.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from tasks.resources import Resources


class ParameterError(Exception):
    """A mistake in a file of parameters; the message names the file, the key and what would be right."""


class StageParams(BaseModel):
    """The base of every stage's parameters: no unknown key, no silent conversion, no number that is none
    (``.nan`` is neither above nor below any bound), no change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


M = TypeVar("M", bound=BaseModel)


def load_section(path: Path, section: str, model: type[M]) -> M:
    """Read one section of a parameter file; a section that is absent means all defaults.

    Raises:
        ParameterError: if the file cannot be read, or the section does not fit ``model``.
    """
    content = read_yaml(path)
    return validate(content.get(section) or {}, model, f"{path}: {section}")


def load_resources(path: Path) -> Resources:
    """Read ``resources.yaml`` (all defaults if absent); ``GRISTMILL_SPARK__MASTER`` and the like win over it.

    Raises:
        ParameterError: if the file or an environment variable does not fit.
    """
    content = read_yaml(path) if path.exists() else {}
    _overlay_environment(content, Resources, "GRISTMILL")
    return validate(content, Resources, str(path))


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping.

    Raises:
        ParameterError: if it is missing, is no YAML, or holds something else.
    """
    try:
        content = parse_yaml(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ParameterError(f"{path} does not exist (run from the project's folder)") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is not valid YAML: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ParameterError(
            f"{path} must hold sections (`name:` and its keys), not {type(content).__name__}"
        )
    return content


def parse_yaml(text: str) -> Any:
    """YAML as DVC reads it (1.2), where ``5e-5`` is a number and not a word.

    Raises:
        yaml.YAMLError: if it is none.
    """
    return yaml.load(text, Loader=_Loader)


def validate(content: Any, model: type[M], where: str) -> M:
    """Check ``content`` against ``model``; ``where`` begins every complaint.

    Raises:
        ParameterError: naming each key that does not fit and what it may be.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        complaints = [_complaint(item, model) for item in error.errors()]
        raise ParameterError("\n  ".join([f"{where} is not valid:", *complaints])) from None


def set_value(content: dict[str, Any], assignment: str) -> None:
    """Apply ``section.key=value`` (the value is YAML) to the content of a parameter file.

    Raises:
        ParameterError: if it has no ``=`` or its path runs through something that is no section.
    """
    name, separator, value = assignment.partition("=")
    if not separator or "." not in name:
        raise ParameterError(f"--set {assignment}: write it as section.key=value, as in ppo.clip_range=0.1")
    *path, last = name.strip().split(".")
    target: Any = content
    for step in path:
        if not isinstance(target, dict):
            raise ParameterError(f"--set {assignment}: {name} does not lead through sections")
        target = target.setdefault(step, {})
    if not isinstance(target, dict):
        raise ParameterError(f"--set {assignment}: {name} does not lead through sections")
    try:
        target[last] = parse_yaml(value)
    except yaml.YAMLError as error:
        raise ParameterError(f"--set {assignment}: the value is not valid YAML: {error}") from None


def nearest(word: str, known: list[str]) -> str:
    """A hint that names the known word most like ``word``, else all that are known."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean `{close[0]}`?" if close else f"known are: {', '.join(sorted(known))}"


_Safe: Any = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # by libyaml where it is there: twenty times as fast


class _Loader(_Safe):
    pass


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+0123456789.")
)


def _complaint(item: Any, model: type[BaseModel]) -> str:
    location = [str(part) for part in item["loc"]]
    key = ".".join(location) or "the section"
    if item["type"] == "extra_forbidden":
        parent = _model_at(model, location[:-1])
        hint = nearest(location[-1], list(parent.model_fields)) if parent else ""
        return f"`{key}` is not a known key; {hint}"
    given = "" if item["type"] == "missing" else f" (given: {item['input']!r})"
    return f"`{key}`: {item['msg']}{given}"


def _model_at(model: type[BaseModel], location: list[str]) -> type[BaseModel] | None:
    """The model that validates the value at ``location``, looking through lists, dicts and unions."""
    current: type[BaseModel] | None = model
    for part in location:
        if current is None:
            return None
        field = current.model_fields.get(part)
        if field is not None:
            current = _first_model(field.annotation)
    return current


def _first_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        found = _first_model(inner)
        if found is not None:
            return found
    return None


def _overlay_environment(content: dict[str, Any], model: type[BaseModel], prefix: str) -> None:
    """Let ``PREFIX_KEY`` and ``PREFIX_SECTION__KEY`` replace what the file says."""
    for name, field in model.model_fields.items():
        variable = f"{prefix}_{name.upper()}"
        inner = _first_model(field.annotation)
        if inner is not None:
            section = content.get(name) or {}
            if isinstance(section, dict):
                _overlay_environment(section, inner, f"{variable}_")
                if section:
                    content[name] = section
        elif variable in os.environ:
            content[name] = parse_yaml(os.environ[variable])
