"""What was in a training step: every document of its batch, with the characters that were seen.

The batch is a function of seed and step, and the token files know the pieces of their sequences: nothing has
to be recorded while training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpus.encoding.index import TokenFile, read_index
from tasks.corpus.encoding.tables import read_documents
from tasks.corpus.snapshot import read_manifest
from tasks.stage import StageError
from tasks.training.batches import PackedBatches
from tasks.training.token_files import PackedSequences


@dataclass(frozen=True)
class Piece:
    """A run of tokens of one document in one sequence of the batch.

    Attributes:
        sequence: the row of the batch.
        position: where in the row it begins.
        tokens: how many there are, the begin and end of the document included.
        document: its id.
        copy: which copy of the document, as the mixture counts them.
        start: the first character that was seen, in the document's text.
        end: behind the last one. A character whose tokens were cut apart is in both pieces.
        text: these characters.
    """

    sequence: int
    position: int
    tokens: int
    document: str
    copy: int
    start: int
    end: int
    text: str


def trace(
    step: int, tokens: Path, snapshot: Path, context: int, batch_size: int, seed: int
) -> Iterator[Piece]:
    """The pieces of the batch of ``step`` (1, 2, …), row by row; the last token of a row is a target only.

    Raises:
        StageError: the token files or the snapshot are not there, or do not belong together.
    """
    if step < 1:
        raise StageError(f"steps are counted from 1: there is no step {step}")
    index = read_index(tokens)
    found = read_manifest(snapshot).snapshot
    if found != index.snapshot:
        raise StageError(
            f"{tokens} was made from snapshot {index.snapshot[:12]}, but {snapshot} is {found[:12]}"
        )
    sequences = PackedSequences(tokens, index)
    documents = _Documents(tokens, snapshot)
    for row, number in enumerate(PackedBatches(sequences, context, batch_size, seed).numbers(step).tolist()):
        file, pieces = sequences.pieces(number)
        for piece in pieces:
            id, copy = documents.name(file, piece.document)
            text = documents.text(file, id, copy)[piece.start : piece.end]
            yield Piece(row, piece.position, piece.tokens, id, copy, piece.start, piece.end, text)


class _Documents:
    """The documents of token files, and their texts."""

    def __init__(self, tokens: Path, snapshot: Path) -> None:
        self._tokens, self._snapshot = tokens, snapshot
        self._tables: dict[str, Any] = {}

    def name(self, file: TokenFile, row: int) -> tuple[str, int]:
        """Id and copy of a document."""
        if file.file not in self._tables:
            self._tables[file.file] = read_documents(self._tokens / file.table.file, ["id", "copy"])
        table = self._tables[file.file]
        return table.column("id")[row].as_py(), table.column("copy")[row].as_py()

    def text(self, file: TokenFile, id: str, copy: int) -> str:
        """A document's text, from the part of the snapshot that its token file was made of."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        part = self._snapshot / file.part
        if not part.exists():
            raise StageError(f"{part} does not exist, but {file.file} was made of it")
        wanted: Any = (pc.field("id") == id) & (pc.field("copy") == copy)
        found = pq.read_table(part, columns=["text"], filters=wanted).column("text")
        if len(found) != 1:
            raise StageError(f"{part} does not hold copy {copy} of document {id} once")
        return found[0].as_py()
