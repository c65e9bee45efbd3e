"""Rows of JSON Lines that people supply: every row is checked, a broken one is named and left out."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tasks.stage import StageError

NAMED = 20
"""How many broken rows a report names; all are counted."""

Row = TypeVar("Row", bound=BaseModel)


class RowCounts(BaseModel):
    """What became of the rows of a source: read = used + broken + too_long."""

    read: int
    used: int
    broken: int
    too_long: int
    broken_rows: list[str]

    def check_too_long(self, source: Path, limit: float) -> None:
        """Stop where too much is lost.

        Raises:
            StageError: if more than the share ``limit`` of the rows is too long.
        """
        if self.too_long > limit * self.read:
            raise StageError(
                f"{source}: {self.too_long} of {self.read} rows are too long for the context, more than the "
                f"share max_too_long = {limit}. Raise the context or the limit."
            )


@dataclass
class Rows(Generic[Row]):
    """The good rows in order; of the broken ones their number, and the first with file, line and reason."""

    good: list[Row] = field(default_factory=list)
    broken: int = 0
    broken_rows: list[str] = field(default_factory=list)

    def counts(self, used: int) -> RowCounts:
        """The counts for a report, where ``used`` of the good rows were not too long."""
        return RowCounts(
            read=len(self.good) + self.broken,
            used=used,
            broken=self.broken,
            too_long=len(self.good) - used,
            broken_rows=self.broken_rows,
        )


def read_rows(source: Path, model: type[Row], *, max_broken: float) -> Rows[Row]:
    """Read a JSON Lines file, or all ``*.jsonl`` and ``*.jsonl.gz`` of a directory in the order of names.

    A byte order mark, CRLF and blank lines are no faults.

    Raises:
        StageError: if there is no such file or no good row, if a compressed file is not whole, or if more
            than the share ``max_broken`` of the rows is broken.
    """
    rows: Rows[Row] = Rows()
    for path in _files(source):
        for number, line in _lines(path):
            try:
                rows.good.append(model.model_validate_json(line.decode("utf-8")))
            except (UnicodeDecodeError, ValidationError) as error:
                rows.broken += 1
                if len(rows.broken_rows) < NAMED:
                    rows.broken_rows.append(f"{path.name}:{number}: {_reason(error)}")
    total = len(rows.good) + rows.broken
    first = f"; the first is {rows.broken_rows[0]}" if rows.broken_rows else ""
    if not rows.good:
        raise StageError(f"{source} holds no usable row out of {total}{first}")
    if rows.broken > max_broken * total:
        raise StageError(
            f"{source}: {rows.broken} of {total} rows are broken, more than the share max_broken = "
            f"{max_broken}{first}"
        )
    return rows


def _files(source: Path) -> list[Path]:
    if source.is_file():
        return [source]
    found = sorted([*source.glob("*.jsonl"), *source.glob("*.jsonl.gz")])
    if not found:
        raise StageError(f"{source} holds no *.jsonl or *.jsonl.gz")
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are not blank, numbered from 1; gzip is known by its first bytes, not by the file's name."""
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if compressed else raw
        number = 0
        try:
            for number, line in enumerate(stream, 1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.strip():
                    yield number, line.strip()
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise StageError(
                f"{path} is not a whole gzip file; it breaks off after line {number}: {error}"
            ) from None


def _reason(error: UnicodeDecodeError | ValidationError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"invalid UTF-8 at byte {error.start} of the line"
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
