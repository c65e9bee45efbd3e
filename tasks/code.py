"""Which of the project's modules a module needs, directly or not.

DVC reruns a stage when code that it uses changed, and nothing else: `dvc.yaml` lists exactly this closure
(``python -m tasks.code dvc.yaml`` writes it there). Checkpoints carry its hash, so that a run resumes only
under the code it began with.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from pathlib import Path

PACKAGES = ("flows", "tasks", "models")
ROOT = Path(__file__).resolve().parent.parent


def module_closure(module: str, root: Path = ROOT) -> list[str]:
    """Paths, relative to ``root`` and sorted, of ``module`` and all project modules that it imports.

    Imports inside functions count; those under ``if TYPE_CHECKING`` do not.

    Raises:
        ModuleNotFoundError: if there is no such module in the project.
    """
    start = _path(module, root)
    if start is None:
        raise ModuleNotFoundError(f"{module} is not a module of {', '.join(PACKAGES)} in {root}")
    seen: set[Path] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        waiting.extend(_imports(path, root))
    return sorted(path.relative_to(root).as_posix() for path in seen)


def code_hash(module: str, root: Path = ROOT) -> str:
    """SHA-256 over the closure's paths and contents."""
    digest = hashlib.sha256()
    for name in module_closure(module, root):
        digest.update(name.encode() + b"\0" + (root / name).read_bytes() + b"\0")
    return digest.hexdigest()


def stage_module(command: str) -> str:
    """The module that a stage's command runs: ``python -m tasks.corpus.dedup …``.

    Raises:
        ValueError: if the command has no ``python -m``.
    """
    found = re.match(r"python -m ([\w.]+)", command)
    if found is None:
        raise ValueError(f"a stage's command must begin with `python -m MODULE`: {command}")
    return found[1]


def write_code_dependencies(graph: Path) -> bool:
    """Rewrite the code entries of every stage's ``deps`` in a ``dvc.yaml``; tell whether anything changed."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.width = 112
    yaml.indent(mapping=2, sequence=4, offset=2)
    content = yaml.load(graph.read_text("utf-8"))
    before = graph.read_text("utf-8")
    for stage in content["stages"].values():
        data = [dep for dep in stage["deps"] if not dep.endswith(".py")]
        code = module_closure(stage_module(stage["cmd"]), graph.resolve().parent)
        stage["deps"].clear()
        stage["deps"].extend(code + data)
        stage["deps"].fa.set_block_style()
    with graph.open("w", encoding="utf-8") as out:
        yaml.dump(content, out)
    return graph.read_text("utf-8") != before


def _path(module: str, root: Path) -> Path | None:
    base = root.joinpath(*module.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _imports(path: Path, root: Path) -> list[Path]:
    found: list[Path] = []
    for node in _live_nodes(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.split(".")[0] in PACKAGES:
                found.extend(filter(None, [_path(name, root)]))
    package = path.parent / "__init__.py"
    while package.is_file() and package.parent != root:
        found.append(package)
        package = package.parent.parent / "__init__.py"
    # An empty __init__.py does nothing: listing it everywhere would only hide what matters.
    return [path for path in found if path.stat().st_size]


def _live_nodes(tree: ast.AST) -> list[ast.AST]:
    nodes: list[ast.AST] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting.extend(node.orelse)
            continue
        nodes.append(node)
        waiting.extend(ast.iter_child_nodes(node))
    return nodes


if __name__ == "__main__":
    write_code_dependencies(Path(sys.argv[1] if len(sys.argv) > 1 else "dvc.yaml"))
