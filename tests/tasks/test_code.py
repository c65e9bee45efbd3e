from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tasks.code import ROOT, code_hash, module_closure, stage_module

GRAPH = yaml.safe_load((ROOT / "dvc.yaml").read_text("utf-8"))["stages"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    files = {
        "tasks/__init__.py": "",
        "tasks/a.py": "import tasks.b\nimport typing\nif typing.TYPE_CHECKING:\n    import tasks.typed\n",
        "tasks/b.py": "def f():\n    from tasks import c\n",
        "tasks/c.py": "import json\n",
        "tasks/typed.py": "",
        "tasks/unused.py": "",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, "utf-8")
    return tmp_path


def test_the_closure_follows_imports_inside_functions_but_not_those_for_types(package: Path) -> None:
    assert module_closure("tasks.a", package) == ["tasks/a.py", "tasks/b.py", "tasks/c.py"]


def test_the_hash_changes_with_any_module_that_is_used_and_no_other(package: Path) -> None:
    before = code_hash("tasks.a", package)
    (package / "tasks/unused.py").write_text("x = 1\n", "utf-8")
    assert code_hash("tasks.a", package) == before
    (package / "tasks/c.py").write_text("x = 1\n", "utf-8")
    assert code_hash("tasks.a", package) != before


def test_a_module_that_is_not_there_is_named(package: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="tasks.nothing"):
        module_closure("tasks.nothing", package)


@pytest.mark.parametrize("stage", GRAPH)
def test_the_code_dependencies_of_a_stage_are_exactly_what_it_imports(stage: str) -> None:
    declared = sorted(dep for dep in GRAPH[stage]["deps"] if dep.endswith(".py"))
    assert declared == module_closure(stage_module(GRAPH[stage]["cmd"])), "run `make graph`"


@pytest.mark.parametrize("stage", GRAPH)
def test_no_stage_imports_the_layer_above(stage: str) -> None:
    closure = module_closure(stage_module(GRAPH[stage]["cmd"]))
    assert not [name for name in closure if name.startswith("flows/")]
