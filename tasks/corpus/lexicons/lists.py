"""Lists of words and what becomes of the documents that have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field, field_validator

from tasks.corpus.lexicons.folding import fold
from tasks.stage import StageError, StageParams


class LexiconParams(StageParams):
    """One list of words."""

    name: str = Field(pattern=r"^[a-z0-9_]+$", description="as it stands in signals, ledger and placeholders")
    path: str = Field(
        description="text file in UTF-8, relative to the folder of lists: an entry a line, # for comments"
    )
    languages: list[Annotated[str, Field(pattern=r"^[a-z]{2,3}$")]] | None = Field(
        default=None,
        min_length=1,
        description="ISO 639 codes of the documents that it is held against; null: all",
    )

    @field_validator("path")
    @classmethod
    def _within_the_project(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError("must be a path within the folder of lists, as in en.txt")
        return path

    def applies_to(self, language: str) -> bool:
        """Whether documents of a language are held against the list."""
        return self.languages is None or language in self.languages


@dataclass(frozen=True)
class Lexicon:
    """A list with its entries, as the file has them."""

    params: LexiconParams
    entries: tuple[str, ...]


def read_lexicon(params: LexiconParams, root: Path) -> Lexicon:
    """Read a list's file; ``root`` is the folder of lists.

    Raises:
        StageError: if the file is missing or not UTF-8 or has no entry, or an entry folds to nothing or to
            the same as an earlier one; it names the file and the line, not the entry.
    """
    path = root / params.path
    where = f"lexicon {params.name}: {params.path}"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StageError(f"{where} cannot be read: {error.strerror}") from None
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StageError(f"{where}, line {line}: not UTF-8; save the list in that encoding") from None
    entries: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines, 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        folded = fold(entry).text.strip()
        if not folded:
            raise StageError(f"{where}, line {number}: nothing is left of the entry when it is folded")
        if folded in entries:
            raise StageError(
                f"{where}, line {number}: the same entry as in line {entries[folded][0]} "
                "(case, width and what does not show make no difference); leave one of them out"
            )
        entries[folded] = (number, entry)
    if not entries:
        raise StageError(f"{where} has no entries; write one a line")
    return Lexicon(params, tuple(entry for _, entry in entries.values()))
