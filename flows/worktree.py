"""A run's own git worktree: the project as it is now on a new branch, with DVC's cache shared."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.git_command import git
from flows.graph import Graph
from flows.project import LOCK, PARAMETERS, BadInput, module_command, program_environment
from tasks.links import link_or_copy

BRANCHES = "runs/"


@dataclass(frozen=True)
class Worktree:
    """A run's folder: the project's place in the worktree, and the branch that its result is recorded on."""

    folder: Path
    branch: str
    name: str
    resumed: bool = False


def open_worktree(
    project: Path, name: str, parameters: str, graph: Graph, work: Path, kept: Path
) -> Worktree:
    """Make the folder of a run on the branch ``runs/<name>``, or go on in the one that it began.

    It holds the project with its uncommitted changes to tracked files, the given content of ``params.yaml``,
    the ``dvc.lock``, whatever of its outputs DVC has, and what stages keep of their last run in ``kept`` (of
    ``resources.yaml``; relative to a project).

    Raises:
        BadInput: without git or a first commit, or if the name is taken by another run.
    """
    top, prefix = _repository(project)
    branch = f"{BRANCHES}{name}"
    root = work / "runs" / name
    folder = root / prefix
    if _exists(project, branch) or root.exists():
        if _is_unfinished(root, folder, name, parameters):
            return Worktree(folder, branch, name, resumed=True)
        raise BadInput(
            f"a run named {name} exists already (branch {branch}, folder {root}): choose another name, or "
            f"remove it with `git worktree remove --force {root}; git worktree prune; git branch -D {branch}`"
        )
    base = _commit_of_now(top, name)
    git(top, "worktree", "add", "--quiet", "-b", branch, str(root), base)
    tree = Worktree(folder, branch, name)
    try:
        for needed in ("dvc.yaml", ".dvc/config"):
            if not (folder / needed).is_file():
                raise BadInput(
                    f"{project / needed} is not in git: commit it first, a run of its own needs it"
                )
        _fill(project, folder, parameters, graph)
        _keep(project, folder, kept)
    except BaseException:
        discard(project, tree)
        raise
    return tree


def record(tree: Worktree, changes: list[str]) -> str:
    """Commit ``dvc.lock`` and ``params.yaml`` once on the run's branch; returns the commit."""
    git(tree.folder, "add", "--force", LOCK, PARAMETERS)
    message = [_subject(tree.name), "\n".join(changes)]
    git(
        tree.folder, "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "--allow-empty",
        *(part for text in message if text for part in ("-m", text)), "--", LOCK, PARAMETERS,
    )  # fmt: skip
    return git(tree.folder, "rev-parse", "HEAD")


def discard(project: Path, tree: Worktree) -> None:
    """Remove a worktree and its branch, as if it had never been made."""
    root = Path(git(tree.folder, "rev-parse", "--show-toplevel")) if tree.folder.exists() else tree.folder
    git(project, "worktree", "remove", "--force", str(root))
    git(project, "branch", "--quiet", "-D", tree.branch)


def untracked(project: Path) -> list[str]:
    """Files that git neither tracks nor ignores: a worktree does not have them."""
    own = {LOCK, PARAMETERS}
    found = git(project, "ls-files", "--others", "--exclude-standard").splitlines()
    return [path for path in found if path not in own]


def commit_tags(folder: Path) -> dict[str, str]:
    """Commit, branch and state of a folder, as tags; empty outside git."""
    try:
        commit = git(folder, "rev-parse", "--verify", "HEAD")
    except BadInput:
        return {}
    branch = git(folder, "rev-parse", "--abbrev-ref", "HEAD")
    changed = git(folder, "status", "--porcelain", "--untracked-files=no")
    return {
        "git.commit": commit,
        "git.branch": branch,
        "git.dirty": str(bool(changed)).lower(),
        "mlflow.source.git.commit": commit,
    }


def _fill(project: Path, folder: Path, parameters: str, graph: Graph) -> None:
    from dvc.config import Config
    from dvc.repo import Repo

    local = project / ".dvc" / "config.local"
    if local.exists():
        shutil.copy(local, folder / ".dvc" / "config.local")
    with Repo(str(project)) as repo:
        cache = repo.cache.local_cache_dir
    with Config(str(folder / ".dvc"), validate=False).edit("local") as config:
        settings: Any = config
        settings.setdefault("cache", {})["dir"] = cache
    (folder / PARAMETERS).write_text(parameters, "utf-8")
    if not (project / LOCK).exists():
        (folder / LOCK).unlink(missing_ok=True)
        return
    shutil.copy(project / LOCK, folder / LOCK)
    # What DVC keeps no copy of comes from the project's folder; where it no longer fits, the stage runs.
    for path in (path for stage in graph.stages.values() for path in stage.unversioned):
        if (project / path).is_file():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(project / path, folder / path)
    done = subprocess.run(
        module_command("dvc", "--wait-for-lock", "checkout", "--quiet", "--force", "--allow-missing"),
        cwd=folder,
        env=program_environment(),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise BadInput(f"dvc checkout in {folder} failed: {done.stderr.strip()}")


def _keep(project: Path, folder: Path, kept: Path) -> None:
    """Stages find what they kept of their last run in the project, as if they had run here."""
    if (project / kept).is_dir() and not (folder / kept).exists():
        shutil.copytree(project / kept, folder / kept, copy_function=link_or_copy)


def _commit_of_now(top: Path, name: str) -> str:
    """HEAD, or a commit on top of it that holds the uncommitted changes; touches no branch."""
    # Where files have new dates alone git refuses to stash, silently; looking at them brings its index up to
    # date.
    git(top, "status", "--porcelain", "--untracked-files=no")
    stash = git(top, "stash", "create")
    if not stash:
        return "HEAD"
    message = f"Uncommitted changes at the start of run {name}"
    return git(top, "commit-tree", f"{stash}^{{tree}}", "-p", "HEAD", "-m", message)


def _is_unfinished(root: Path, folder: Path, name: str, parameters: str) -> bool:
    """Whether this is the folder of the same run, with the same parameters, and no result recorded yet."""
    if not (root / ".git").exists() or not (folder / PARAMETERS).is_file():
        return False
    same = (folder / PARAMETERS).read_text("utf-8") == parameters
    return same and git(root, "log", "-1", "--format=%s") != _subject(name)


def _subject(name: str) -> str:
    return f"Run {name}"


def _exists(project: Path, branch: str) -> bool:
    return bool(git(project, "branch", "--list", branch))


def _repository(project: Path) -> tuple[Path, str]:
    """The top of the git repository, and the project's place in it."""
    if shutil.which("git") is None:
        raise BadInput(
            "changed parameters need git, which is not installed; or edit params.yaml and run that"
        )
    try:
        top = git(project, "rev-parse", "--show-toplevel")
    except BadInput:
        raise BadInput(
            f"{project} is not in a git repository: changed parameters get a branch of their own. Run "
            "`git init` and commit, or edit params.yaml and run that"
        ) from None
    try:
        git(project, "rev-parse", "--verify", "HEAD")
    except BadInput:
        raise BadInput(f"the git repository {top} has no commit yet: commit the project first") from None
    return Path(top), git(project, "rev-parse", "--show-prefix")
