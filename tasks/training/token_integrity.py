"""Token files are what their index says, byte for byte, before anything learns from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.corpus.token_documents import documents_path
from tasks.stage import StageError

INDEX = "index.json"
_AGAIN = "`dvc checkout data/tokens` brings it back, `dvc repro -f -s encode` makes it again"


def verify_tokens(directory: Path) -> int:
    """Check every file that ``index.json`` lists with a ``sha256``, wherever in it, and the documents tables.

    A table has no checksum of its own in an index that does not list it; then it must be whole, and its rows
    and tokens those of its token file. Nothing is remembered from one call to the next: a bit that turns on a
    disk changes no date.

    Returns:
        How many bytes were read and found right.

    Raises:
        StageError: naming the first file that is missing or differs.
    """
    try:
        index = json.loads((directory / INDEX).read_text("utf-8"))
    except FileNotFoundError:
        raise StageError(f"{directory / INDEX} does not exist; the stage encode writes it") from None
    except ValueError as error:
        raise StageError(f"{directory / INDEX} is not an index of token files: {error}") from None
    entries = list(_entries(index))
    listed = {entry["file"] for entry in entries}
    read = 0
    for entry in entries:
        path = directory / entry["file"]
        if not path.is_file():
            raise StageError(f"{path} does not exist, but {INDEX} lists it: {_AGAIN}")
        with path.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != entry["sha256"]:
            raise StageError(
                f"{path} is not the file that {INDEX} lists: its sha256 is {found[:12]}…, not "
                f"{str(entry['sha256'])[:12]}…. {_AGAIN}"
            )
        read += path.stat().st_size
        table = documents_path(directory, entry["file"])
        if table != path and table.name not in listed:
            _check_documents(table, entry)
    return read


def _entries(content: Any) -> Iterator[dict[str, Any]]:
    """Every object of the index that names a file and its checksum."""
    if isinstance(content, dict):
        if isinstance(content.get("file"), str) and "sha256" in content:
            yield content
        for inner in content.values():
            yield from _entries(inner)
    elif isinstance(content, list):
        for inner in content:
            yield from _entries(inner)


def _check_documents(table: Path, entry: dict[str, Any]) -> None:
    """The documents of a token file: as many rows and tokens as the index says.

    Raises:
        StageError: naming the table.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if "documents" not in entry or "tokens" not in entry:
        return
    try:
        column = pq.read_table(table, columns=["tokens"]).column("tokens")
    except FileNotFoundError:
        raise StageError(f"{table} does not exist, but {entry['file']} has documents: {_AGAIN}") from None
    except Exception as error:  # pyarrow's errors for broken bytes have no class of their own
        raise StageError(f"{table} is no whole Parquet file ({error}): {_AGAIN}") from None
    rows, tokens = len(column), pc.call_function("sum", [column]).as_py() or 0
    if (rows, tokens) != (entry["documents"], entry["tokens"]):
        raise StageError(
            f"{table} has {rows} documents of {tokens} tokens, but {INDEX} says {entry['documents']} of "
            f"{entry['tokens']}: {_AGAIN}"
        )
