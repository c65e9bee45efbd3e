"""Documents that must not be learnt from any more: ``forgotten.jsonl``, an input of the stage clean."""

from __future__ import annotations

import datetime
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tasks.records import Finding
from tasks.stage import StageError

RULE = "forgotten"
"""The rule of the ledger."""

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Forgotten(BaseModel):
    """A line of the file: hashes alone, never text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Hash
    contents: tuple[Hash, ...] = Field(
        default=(), description="hashes of the text, as scored and as cleaned: any document with it goes too"
    )
    date: datetime.date
    reason: str = Field(default="")


@dataclass(frozen=True)
class ForgottenDocuments:
    """What a document is held against."""

    ids: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.ids)

    def finding(self, document: str, content: str) -> Finding | None:
        """What speaks against a document with this id and this hash of its text."""
        if document in self.ids:
            return Finding(RULE, None, None, "its id is listed in forgotten.jsonl")
        if content in self.contents:
            return Finding(RULE, None, None, "the hash of its text is listed in forgotten.jsonl")
        return None


def forgotten_documents(entries: Iterable[Forgotten]) -> ForgottenDocuments:
    """The entries, ready to be held against documents."""
    entries = list(entries)
    contents = frozenset(content for entry in entries for content in entry.contents)
    return ForgottenDocuments(frozenset(entry.id for entry in entries), contents)


def read_forgotten(path: Path) -> list[Forgotten]:
    """Read the file; blank lines say nothing.

    Raises:
        StageError: it does not exist, or a line is none of these, with its number.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        raise StageError(
            f"{path} does not exist: an empty file says that nothing is to be forgotten, "
            f"`git checkout {path}` brings back the one in git"
        ) from None
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(Forgotten.model_validate_json(line))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'the line'}: {fault['msg']}"
                for fault in error.errors()
            )
            raise StageError(
                f"{path}, line {number} is no entry of a forgotten document ({faults}); "
                "`gristmill forget ID` writes them"
            ) from None
    return entries


def add_forgotten(path: Path, entries: Iterable[Forgotten]) -> None:
    """Add entries to the file, all or none of them; of two processes that do one waits for the other."""
    with _alone(path.parent):
        before = path.read_text("utf-8") if path.exists() else ""
        if before and not before.endswith("\n"):
            before += "\n"
        partial = path.with_name(f".{path.name}.partial")
        try:
            with partial.open("w", encoding="utf-8") as file:
                file.write(before + "".join(f"{entry.model_dump_json()}\n" for entry in entries))
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: that of the file itself would go with the file that is replaced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
