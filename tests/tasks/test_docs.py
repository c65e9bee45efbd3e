from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tasks.code import ROOT, stage_module
from tasks.corpus.encoding.index import TokenFile, TokenIndex
from tasks.corpus.encoding.tables import DOCUMENTS as TABLE_OF_DOCUMENTS
from tasks.corpus.encoding.tables import PIECES
from tasks.corpus.scoring.parts import FIXED_SIGNALS
from tasks.corpus.snapshot import Manifest, SnapshotFile
from tasks.parameters import parse_yaml
from tasks.records import DOCUMENT_COLUMNS

GRAPH = yaml.safe_load((ROOT / "dvc.yaml").read_text("utf-8"))["stages"]
PAGES = ROOT / "docs" / "stages"
DOCUMENTS = ROOT / "docs" / "documents.md"
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


@dataclass(frozen=True)
class Parameter:
    """A field that a person can set: ``default`` is what it is when its stage's section is empty."""

    name: str
    default: Any
    field: FieldInfo

    @property
    def defaults(self) -> list[Any]:
        """Two where the stage has other defaults for a nested section than the section's own model."""
        return [self.default, self.field.get_default(call_default_factory=True)]


@dataclass(frozen=True)
class Row:
    """A row of the table of parameters."""

    defaults: str
    meaning: str


def _stage_types(stage: str) -> dict[str, Any]:
    return get_type_hints(getattr(importlib.import_module(stage_module(GRAPH[stage]["cmd"])), stage))


def _parameters(stage: str) -> dict[str, list[Parameter]]:
    """By dotted name; several where the variants of a union share a name, the default one first."""
    found: dict[str, list[Parameter]] = {}
    for parameter in _walk(_stage_types(stage)["params"]):
        found.setdefault(parameter.name, []).append(parameter)
    return found


def _walk(model: type[BaseModel], default: Any = None, prefix: str = "") -> Iterator[Parameter]:
    for key, field in model.model_fields.items():
        value = getattr(default, key, field.get_default(call_default_factory=True))
        nested = sorted(_nested(field.annotation), key=lambda found: not isinstance(value, found[1]))
        if not nested or nested[0][0] or value is None:
            yield Parameter(prefix + key, value, field)
        for suffix, inner in nested:
            of_inner = value if isinstance(value, inner) else None
            yield from _walk(inner, of_inner, f"{prefix}{key}{suffix}.")


def _nested(annotation: Any, suffix: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Models in an annotation: ``[]`` for an item of a list, ``.*`` for a value of a dict."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield suffix, annotation
        return
    step = {list: "[]", dict: ".*"}.get(get_origin(annotation), "")
    for inner in get_args(annotation):
        yield from _nested(inner, suffix + step)


def _page(stage: str) -> str:
    return (PAGES / f"{stage}.md").read_text("utf-8")


def _rows(stage: str) -> dict[str, Row]:
    section = _page(stage).split("\n## Parameters\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*) \|$", section, re.MULTILINE)
    assert len({name for name, *_ in rows}) == len(rows), "a parameter stands in the table twice"
    return {name: Row(*cells) for name, *cells in rows}


def _quoted(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def _prose_files() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _without_code_blocks(path: Path) -> str:
    return re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_every_stage_has_a_page_and_every_page_a_stage() -> None:
    assert {path.stem for path in PAGES.iterdir()} == set(GRAPH)


@pytest.mark.parametrize("stage", GRAPH)
def test_the_table_has_every_parameter_of_the_stage_and_no_other(stage: str) -> None:
    assert set(_rows(stage)) == set(_parameters(stage))


@pytest.mark.parametrize("stage", GRAPH)
def test_the_table_shows_the_defaults_of_the_code(stage: str) -> None:
    rows = _rows(stage)
    for name, (parameter, *_) in _parameters(stage).items():
        shown = rows[name].defaults
        if parameter.default is PydanticUndefined:
            assert shown == "required", name
            continue
        # repr tells 1 from 1.0 and from true.
        assert {repr(parse_yaml(value)) for value in _quoted(shown)} == set(map(repr, parameter.defaults)), (
            f"{stage}.{name}: the page shows {shown}"
        )


@pytest.mark.parametrize("stage", GRAPH)
def test_the_table_shows_bounds_patterns_and_choices(stage: str) -> None:
    rows = _rows(stage)
    for name, parameters in _parameters(stage).items():
        for field in (parameter.field for parameter in parameters):
            meaning = rows[name].meaning
            for constraint in field.metadata:
                for attribute, symbol in BOUNDS.items():
                    bound = getattr(constraint, attribute, None)
                    assert bound is None or f"{symbol} {bound}" in meaning, f"{stage}.{name}: {constraint}"
                pattern = getattr(constraint, "pattern", None)
                assert pattern is None or pattern in _quoted(meaning), f"{stage}.{name}: {constraint}"
            choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            assert set(choices) <= _quoted(meaning), f"{stage}.{name}"


@pytest.mark.parametrize("stage", GRAPH)
def test_the_page_names_what_the_stage_reads_writes_reports_and_how_it_is_run(stage: str) -> None:
    page, entry = _page(stage), GRAPH[stage]
    code = ("tasks/", "models/")
    paths = [path for path in [*entry["deps"], *entry["outs"]] if not path.startswith(code)]
    reports = [path for metric in entry["metrics"] for path in metric]
    fields = list(_stage_types(stage)["return"].model_fields)
    prose = _quoted(_without_code_blocks(PAGES / f"{stage}.md"))
    assert [name for name in [*paths, *reports, *fields] if name not in prose] == []
    command = re.search(r"^```\n(python -m .*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert command is not None
    assert command[1].replace("\\\n", " ").split() == entry["cmd"].split()
    assert f"`dvc repro -s {stage}`" in page


def test_no_page_names_a_parameter_that_does_not_exist() -> None:
    known: set[str] = set()
    for stage in GRAPH:
        for name in _parameters(stage):
            steps = f"{stage}.{name}".split(".")
            known |= {".".join(steps[:length]) for length in range(2, len(steps) + 1)}
    known |= {name.replace("[]", "") for name in known}
    key = re.compile(rf"`((?:{'|'.join(GRAPH)})\.[\w.\[\]]+)`")
    files = (".json", ".py", ".md", ".html", ".css", ".j2")
    for path in _prose_files():
        named = {name for name in key.findall(_without_code_blocks(path)) if not name.endswith(files)}
        assert named <= known, f"{path.relative_to(ROOT)}: {sorted(named - known)}"


def test_the_page_of_signals_names_every_signal() -> None:
    page = _quoted((ROOT / "docs" / "signals.md").read_text("utf-8"))
    assert [name for name in FIXED_SIGNALS if name not in page] == []


def test_the_page_of_documents_names_every_column_and_key() -> None:
    token_index = [*TokenIndex.model_fields, *TokenFile.model_fields, *TABLE_OF_DOCUMENTS, *PIECES]
    manifest = [*Manifest.model_fields, *SnapshotFile.model_fields]
    ledger = ["id", "stage", "rule", "value", "threshold", "verdict", "detail"]
    mixture = ["split", "copy", "order"]
    names = [*DOCUMENT_COLUMNS, *mixture, *ledger, *manifest, *token_index]
    assert [name for name in names if name not in _quoted(DOCUMENTS.read_text("utf-8"))] == []


@pytest.mark.parametrize("path", _prose_files(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_to_a_file(path: Path) -> None:
    text = _without_code_blocks(path)
    targets = [*re.findall(r"\]\(([^)\s]+)", text), *re.findall(r"(?:src|href)=\"([^\"]+)\"", text)]
    relative = [target.split("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]
    assert [target for target in relative if not (path.parent / target).exists()] == []


def test_every_link_to_a_heading_of_these_pages_leads_to_one() -> None:
    for path in _prose_files():
        for target, anchor in re.findall(r"\]\(([^)\s#]+\.md)#([^)]+)\)", _without_code_blocks(path)):
            if re.match(r"[a-z]+:", target):
                continue
            headings = re.findall(r"^#+ (.*)$", (path.parent / target).read_text("utf-8"), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
            assert anchor in slugs, f"{path.relative_to(ROOT)}: {target} has no heading #{anchor}"
