"""Compiled code is found again by what it was compiled from, wherever that lies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.code import ROOT

OUTER = """\
from tasks.compiled import compiled
from tasks.inner import inner

@compiled()
def outer(x):
    return inner(x)
"""
INNER = """\
from tasks.compiled import compiled

@compiled(inline="always")
def inner(x):
    return x + {constant}
"""
CALL = "from tasks.outer import outer; print(outer(1), sum(outer.stats.cache_hits.values()))"


@pytest.fixture
def project(tmp_path: Path):
    """A project of two modules, one of which is inlined in the other; its cache is a folder of the test."""

    def make(name: str, constant: int) -> str:
        folder = tmp_path / name
        (folder / "tasks").mkdir(parents=True, exist_ok=True)
        for module in ("compiled", "code"):
            shutil.copy(ROOT / "tasks" / f"{module}.py", folder / "tasks")
        (folder / "tasks" / "__init__.py").touch()
        (folder / "tasks" / "outer.py").write_text(OUTER)
        (folder / "tasks" / "inner.py").write_text(INNER.format(constant=constant))
        program = f"import sys; sys.prefix = {str(tmp_path)!r}\n{CALL}"
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return make


def test_a_second_process_loads_what_the_first_compiled(project) -> None:
    assert project("one", 10) == "11 0"
    assert project("one", 10) == "11 1"


def test_another_copy_of_the_project_loads_it_too(project) -> None:
    assert project("one", 10) == "11 0"
    assert project("two", 10) == "11 1"


def test_an_edit_of_what_is_inlined_from_another_module_is_noticed(project) -> None:
    assert project("one", 10) == "11 0"
    assert project("one", 20) == "21 0"
