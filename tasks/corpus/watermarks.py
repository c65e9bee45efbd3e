"""Watermarks: what has been collected of each source, so that the next run collects only what is new.

A file is known by its name and by an identity that does not depend on the machine: a hash of its bytes, or
what its store says (an ETag, a time of change).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tasks.stage import StageError

CHUNK = 2**20


class Mark(BaseModel):
    """A file as it was when it was collected."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    size: int | None = Field(ge=0, description="bytes; null where the store does not tell")
    identity: str = Field(min_length=1)


Watermarks = dict[str, dict[str, Mark]]
"""Source -> file -> mark."""


@dataclass(frozen=True)
class Fingerprint:
    """The identity of a file's first ``size`` bytes, and of those that were there before.

    ``resume`` is where the first line begins that was not there, or not whole, before.
    """

    size: int
    identity: str
    before: str | None = None
    resume: int = 0


def read_watermarks(path: Path) -> Watermarks:
    """Read a file of watermarks; ``{}`` says that nothing has been collected yet.

    Raises:
        StageError: if it holds something else.
    """
    try:
        return TypeAdapter(Watermarks).validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise StageError(
            f"{path} holds no watermarks: {place}: {first['msg']}. Write {{}} to collect everything, or copy "
            "the watermarks.json of a raw layer there"
        ) from None


def write_watermarks(path: Path, watermarks: Watermarks) -> None:
    """Write watermarks, sorted, one line a file: the same marks give the same bytes."""
    with path.open("w", encoding="utf-8", newline="\n") as written:
        written.write("{")
        for number, (source, marks) in enumerate(sorted(watermarks.items())):
            written.write(f"{',' if number else ''}\n{_json(source)}: {{")
            for position, (name, mark) in enumerate(sorted(marks.items())):
                line = f"{_json(name)}: {_json(mark.model_dump())}"
                written.write(f"{',' if position else ''}\n{line}")
            written.write("\n}")
        written.write("\n}\n")


def fingerprint(opened: BinaryIO, size: int | None, before: int | None = None) -> Fingerprint:
    """Hash a file from its beginning up to ``size`` bytes (None: all), in one pass.

    With ``before``, its size when it was collected, also what lay there then, and where reading goes on.
    """
    digest = hashlib.sha256()
    old: str | None = None
    position = line_start = 0
    whole_line = True
    while size is None or position < size:
        wanted = CHUNK if size is None else min(CHUNK, size - position)
        if before is not None and position < before:
            wanted = min(wanted, before - position)
        chunk = opened.read(wanted)
        if not chunk:
            break
        if before is not None:
            if position == before:
                # A last line without its end is whole if the end is what came first afterwards.
                whole_line = line_start == before or chunk[:1] in (b"\n", b"\r")
            elif position < before and b"\n" in chunk:
                line_start = position + chunk.rindex(b"\n") + 1
        digest.update(chunk)
        position += len(chunk)
        if position == before:
            old = f"sha256:{digest.hexdigest()}"
    resume = before if before is not None and whole_line else line_start
    return Fingerprint(position, f"sha256:{digest.hexdigest()}", old, resume or 0)


def _json(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True)
