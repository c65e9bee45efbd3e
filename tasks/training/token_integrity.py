"""Token files are what their index says, byte for byte, before anything learns from them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from tasks.corpus.encoding.index import INDEX, ListedFile, TokenIndex
from tasks.stage import StageError

_AGAIN = "`dvc checkout data/tokens` brings it back, `dvc repro -f -s encode` makes it again"


def verify_tokens(directory: Path, index: TokenIndex) -> int:
    """Check every file that the index of a directory lists: tokens, tables, tokenizer.

    Nothing is remembered from one call to the next: a bit that turns on a disk changes no date.

    Returns:
        How many bytes were read and found right.

    Raises:
        StageError: naming the first file that is missing or differs.
    """
    read = 0
    for listed in _listed(index):
        path = directory / listed.file
        if not path.is_file():
            raise StageError(f"{path} does not exist, but {INDEX} lists it: {_AGAIN}")
        with path.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != listed.sha256:
            raise StageError(
                f"{path} is not the file that {INDEX} lists: its sha256 is {found[:12]}…, not "
                f"{listed.sha256[:12]}…. {_AGAIN}"
            )
        read += path.stat().st_size
    return read


def _listed(index: TokenIndex) -> Iterator[ListedFile]:
    yield from index.tokenizer
    for file in (file for files in index.splits.values() for file in files):
        yield file
        yield file.table
        if file.pieces is not None:
            yield file.pieces
