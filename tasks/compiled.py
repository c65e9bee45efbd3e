"""Functions that numba compiles to machine code, and where that is kept.

numba keeps compiled code beside the source and knows it by that file alone: an edit of a function that is
inlined from another module would go unnoticed, and every worktree would compile anew. Here it is kept
beside the installed packages, and known by all of the project's code that the function's module imports.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba
from numba import config
from numba.core import caching

from tasks.code import code_hash

F = TypeVar("F", bound=Callable[..., Any])


def compiled(*, inline: Literal["always", "never"] = "never") -> Callable[[F], F]:
    """Compile a function when it is first called with its types; later processes load it."""
    # numba makes the attributes of its configuration at run time, where no checker sees them.
    config.CACHE_LOCATOR_CLASSES = f"{__name__}.{ProjectCode.__name__}"  # type: ignore[attr-defined]
    return cast(Callable[[F], F], numba.njit(cache=True, inline=inline))


class ProjectCode(caching._CacheLocator):
    """Where numba keeps the code of a function of this project, and by what it knows that it is still the
    same."""

    def __init__(self, function: Any) -> None:
        self._module = function.__module__
        self._line = function.__code__.co_firstlineno
        self._stamp = _stamp(self._module)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> ProjectCode | None:
        """None where the function is not from a file of the project: then numba compiles it in each
        process."""
        try:
            locator = cls(py_func)
            locator.ensure_cache_path()
        except (ModuleNotFoundError, OSError):
            return None
        return locator

    def get_cache_path(self) -> str:
        """A folder for each state of a module's code."""
        return str(_folder() / f"{self._module}-{self._stamp[:12]}")

    def get_source_stamp(self) -> str:
        """The hash of the module and of all that it imports of the project."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Tells functions of one name apart."""
        return str(self._line)


@functools.cache
def _stamp(module: str) -> str:
    return code_hash(module)


def _folder() -> Path:
    """Beside the installed packages if they can be written, else where caches of this user are."""
    installed = Path(sys.prefix)
    if os.access(installed, os.W_OK):
        return installed / "compiled"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gristmill" / "compiled"
