"""The contract of a stage: a pure function that becomes a command.

A stage is written once::

    @stage
    def mix(unique: Input, mixture: Output, params: MixParams, resources: Resources) -> MixReport: ...

    if __name__ == "__main__":
        run_as_stage(mix)

and used three ways with the same result: called from Python, run by DVC as
``python -m tasks.corpus.mix data/unique data/mixture``, run by a flow. ``@stage`` checks the inputs and
makes the outputs atomic; ``run_as_stage`` adds what a command needs: arguments, ``params.yaml``,
``resources.yaml``, the report file, tracking, and errors that a person can act on.
"""

from __future__ import annotations

import argparse
import errno
import functools
import importlib
import inspect
import json
import logging
import os
import resource
import shutil
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, model_validator

from tasks.code import code_hash
from tasks.exclusive import exclusive
from tasks.parameters import ParameterError, StageParams, load_resources, load_section
from tasks.tracking import Tracker

log = logging.getLogger("gristmill")

Input = Annotated[Path, "input"]
"""A path that the stage reads; it must exist when the stage starts."""

Output = Annotated[Path, "output"]
"""A path that the stage writes: a temporary sibling while it works, renamed when it returns."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""What the operating system says where a person has to do something: to try again is of no use."""

_JAVA_MEMORY = "java.lang.OutOfMemoryError"
_UNREADABLE = "[FAILED_READ_FILE"
"""What Spark says of these."""

P = ParamSpec("P")
R = TypeVar("R", bound="StageReport")


class StageError(Exception):
    """Bad input: the message says what is wrong, where, and what would be right."""


class StageReport(BaseModel):
    """What a stage reports: only what two equal runs have in common (DVC hashes it)."""

    model_config = ConfigDict(extra="forbid")

    def metrics(self) -> dict[str, float]:
        """Every number of the report under its dotted name, for tracking."""
        return dict(_numbers(self.model_dump()))


class DocumentReport(StageReport):
    """The report of a stage through which documents pass: nothing disappears.

    Raises:
        ValueError: if ``records_in`` is not ``kept + removed + quarantined``, or the rules do not add up.
    """

    records_in: int
    kept: int
    removed: int = 0
    quarantined: int = 0
    removed_by_rule: dict[str, int] = {}
    kept_by_source: dict[str, int] = {}
    kept_by_language: dict[str, int] = {}

    @model_validator(mode="after")
    def _nothing_disappears(self) -> DocumentReport:
        if self.records_in != self.kept + self.removed + self.quarantined:
            raise ValueError(
                f"documents are unaccounted for: {self.records_in} in, but {self.kept} kept + "
                f"{self.removed} removed + {self.quarantined} quarantined"
            )
        if sum(self.removed_by_rule.values()) != self.removed + self.quarantined:
            raise ValueError(
                f"{self.removed + self.quarantined} documents were dropped, but the first rules that "
                f"dropped them count {sum(self.removed_by_rule.values())}"
            )
        return self


def stage(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function a stage: inputs are checked, outputs appear whole or not at all.

    Raises (when called):
        StageError: if an input does not exist, or an output would replace an input.
    """
    roles = _path_roles(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = inspect.signature(function).bind(*args, **kwargs)
        for name, role in roles.items():
            path = Path(bound.arguments[name])
            bound.arguments[name] = path
            if role == "input" and not path.exists():
                raise StageError(
                    f"stage {function.__name__}: its input {path} does not exist. "
                    "Run the stage that makes it first (`gristmill run`, or `dvc repro` for the whole graph)."
                )
        _refuse_to_replace_inputs(function.__name__, roles, bound.arguments)
        with ExitStack() as stack:
            for name, role in roles.items():
                if role == "output":
                    bound.arguments[name] = stack.enter_context(publish(bound.arguments[name]))
            return function(*bound.args, **bound.kwargs)

    return wrapper


@contextmanager
def publish(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``path`` that takes its place if the block succeeds.

    A block that raises, or a process that is killed, leaves ``path`` as it was.

    Raises:
        StageError: another process writes to ``path``, or nothing was written.
    """
    partial, retired, lock = (path.parent / f".{path.name}.{what}" for what in ("partial", "retired", "lock"))
    path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(lock) as alone:
        if not alone:
            raise StageError(f"another process is writing {path}: wait until it is done, or stop it")
        if _is_there(retired) and not _is_there(path):
            retired.rename(path)  # a process was killed when it had just moved what was there away
        _remove(partial)
        try:
            yield partial
        except BaseException:
            _remove(partial)
            raise
        if not partial.exists():
            raise StageError(f"the stage returned without writing {path}")
        _remove(retired)
        if _is_there(path):
            path.rename(retired)
        partial.rename(path)
        _remove(retired)


def run_as_stage(function: Callable[..., StageReport], argv: list[str] | None = None) -> None:
    """Run a stage as a command, and end the process with a status that tells how it went.

    Status 0: done; 2: bad input, with a message and no traceback; 1: anything else, with the traceback.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", datefmt="%H:%M:%S")
    function = _imported(function)
    name = function.__name__
    arguments = _command_line(function).parse_args(argv)
    try:
        params_model = get_type_hints(function)["params"]
        params = load_section(arguments.params, name, params_model)
        resources = load_resources(arguments.resources)
    except ParameterError as error:
        _fail(2, f"{name}: {error}")
    report_path = arguments.reports / f"{name}.json"
    report_path.unlink(missing_ok=True)
    tracker = Tracker.for_stage(name, resources, params.model_dump(mode="json"))
    started = time.time()
    paths = {key: getattr(arguments, key) for key in _path_roles(function)}
    try:
        extra = {"resources": resources, "tracker": tracker}
        accepted = inspect.signature(function).parameters
        code = _code(function)
        report = function(**paths, params=params, **{k: v for k, v in extra.items() if k in accepted})
        _write_json(report_path, report.model_dump(mode="json"))
        _check_unchanged(name, arguments.params, params, code, _code(function))
        _record_timing(resources.work / "stages" / f"{name}.json", started)
        tracker.finish("FINISHED", report.metrics(), [report_path])
    except (StageError, ParameterError) as error:
        tracker.finish("FAILED")
        _fail(2, f"{name}: {error}")
    except SystemExit:  # it was asked to stop, has said so, and knows its status
        tracker.finish("KILLED")
        raise
    except BaseException as error:
        tracker.finish("KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")
        if (refusal := _refusal(name, error, [*paths.values(), resources.work])) is not None:
            _fail(2, refusal)
        traceback.print_exc()
        _fail(1, f"{name} failed: {type(error).__name__}: {error}")
    log.info("%s done in %.1f s", name, time.time() - started)


def _refuse_to_replace_inputs(stage: str, roles: dict[str, str], paths: dict[str, Any]) -> None:
    """What is written takes the place of all that was there: that must be nothing that the stage reads.

    Raises:
        StageError: naming the two paths.
    """
    read, written = (
        [paths[name] for name, role in roles.items() if role == which] for which in ("input", "output")
    )
    for output in written:
        for path in read:
            if path.resolve().is_relative_to(output.resolve()):
                raise StageError(
                    f"stage {stage}: its output {output} would replace its input {path}: give the output a "
                    "path of its own"
                )


def _imported(function: Callable[..., Any]) -> Callable[..., Any]:
    """The stage as its module has it when imported: Spark's workers cannot import from ``__main__``."""
    main = sys.modules["__main__"]
    if function.__module__ != "__main__" or main.__spec__ is None:
        return function
    return getattr(importlib.import_module(main.__spec__.name), function.__name__)


def _path_roles(function: Callable[..., Any]) -> dict[str, str]:
    """Names of the path arguments in order, each with its role ``input`` or ``output``."""
    hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    return {
        name: hint.__metadata__[0]
        for name, hint in hints.items()
        if getattr(hint, "__metadata__", None) and hint.__metadata__[0] in ("input", "output")
    }


def _code(function: Callable[..., Any]) -> str | None:
    """The hash of the project code that the stage uses; None for a stage outside the project."""
    try:
        return code_hash(function.__module__, Path.cwd())
    except ModuleNotFoundError:
        return None


def _check_unchanged(
    name: str, path: Path, params: StageParams, before: str | None, after: str | None
) -> None:
    """DVC records parameters and code as they are when a stage ends: they must be what it ran with.

    Raises:
        StageError: they were edited meanwhile; the output stays, but DVC records nothing.
    """
    changed = []
    if load_section(path, name, type(params)) != params:
        changed.append(f"section `{name}` of {path}")
    if before != after:
        changed.append("the code of the stage")
    if changed:
        raise StageError(
            f"{' and '.join(changed)} changed while the stage was running, so DVC would record what did not "
            f"make this result. To keep it: undo the change, then `dvc commit {name}`. Else run again"
        )


def _command_line(function: Callable[..., Any]) -> argparse.ArgumentParser:
    summary = (inspect.getdoc(function) or "").splitlines()
    parser = argparse.ArgumentParser(description=summary[0] if summary else None)
    for name, role in _path_roles(function).items():
        parser.add_argument(name, type=Path, help=role)
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--resources", type=Path, default=Path("resources.yaml"))
    parser.add_argument("--reports", type=Path, default=Path("reports"), help="where <stage>.json goes")
    return parser


def _numbers(value: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield prefix, float(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{prefix}.{key}" if prefix else str(key))


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
    partial.replace(path)


def _record_timing(path: Path, started: float) -> None:
    """What differs between two equal runs stays out of the report and goes to the work directory."""
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    _write_json(
        path,
        {
            "started": started,
            "seconds": round(time.time() - started, 3),
            "peak_memory_mib": round(peak / 1024, 1),
            "host": socket.gethostname(),
            "pid": os.getpid(),
        },
    )


def _refusal(name: str, error: BaseException, folders: Sequence[Path]) -> str | None:
    """What to say where the operating system refused to write or read, a file is damaged or Java's memory is
    used up; None if it is another fault.

    From a worker of Spark's its error comes wrapped in an error of Spark's.
    """
    number = error.errno if isinstance(error, OSError) else None
    told = str(error)
    if _JAVA_MEMORY in _with_causes(error):
        return (
            f"{name}: Spark's Java used up its memory: raise spark.driver_memory in resources.yaml "
            "(a document takes some twenty times its size)"
        )
    if _UNREADABLE in told:
        line = next(line.strip() for line in told.splitlines() if _UNREADABLE in line)
        return f"{name}: {line} It is damaged: run the stage that makes it again, or `dvc checkout` it"
    if number is None:
        number = next((each for each in (*_FULL, *_DENIED) if os.strerror(each) in told), None)
        lines = told.splitlines() if number is not None else []
        told = next((line.strip() for line in lines if os.strerror(number or 0) in line), told)
    if number in _FULL:
        # A copy that fails names the file that it reads first.
        named = [error.filename, error.filename2] if isinstance(error, OSError) else []
        return _disk_full_message(name, [*(Path(each) for each in named if isinstance(each, str)), *folders])
    if number in _DENIED:
        return (
            f"{name}: {told}. The folder or its file system lets this user not write there, or not read: "
            "change its permissions, or give the stage another path. What was there is as it was"
        )
    return None


def _with_causes(error: BaseException | None) -> str:
    """What an error says, and what those say on whose account it came."""
    told = []
    while error is not None:
        told.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(told)


def _disk_full_message(name: str, paths: Sequence[Path]) -> str:
    """Names the file system, of those that the stage writes to or reads from, that has the least room."""
    there = [
        next(folder for folder in (path, *path.parents) if folder.exists())
        for path in (path.absolute() for path in paths)
    ]
    free, where = min((shutil.disk_usage(folder).free / 2**20, folder) for folder in there)
    return (
        f"{name}: the disk is full ({where}: {free:.0f} MiB free). Nothing half-written was left. "
        "Free some space (`dvc gc --workspace --all-branches` drops unused versions) and run again: finished "
        "stages stay."
    )


def _is_there(path: Path) -> bool:
    """Whether something is there, be it a link to nothing."""
    return path.is_symlink() or path.exists()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _fail(status: int, message: str) -> NoReturn:
    print(f"error: {message}", file=sys.stderr, flush=True)
    sys.exit(status)


__all__ = [
    "DocumentReport",
    "Input",
    "Output",
    "StageError",
    "StageParams",
    "StageReport",
    "Tracker",
    "publish",
    "run_as_stage",
    "stage",
]
