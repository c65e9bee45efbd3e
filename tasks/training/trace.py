"""What was in a training step: every document of its batch, with the characters that were seen.

The batch is a function of seed and step, the token files know their documents, and a document encodes to the
same tokens again: so nothing has to be recorded while training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tasks.corpus.token_documents import documents_path
from tasks.stage import StageError
from tasks.training.batches import PackedBatches, TokenFile, TokenIndex, TokenStream, read_index
from tasks.training.chat import ChatTokenizer


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
        end: behind the last one.
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
    stream = TokenStream(tokens, index, "train")
    batches = PackedBatches(stream, context, batch_size, seed)
    documents = _Documents(tokens, snapshot, index)
    tokenizer = ChatTokenizer(tokens)
    for sequence, window in enumerate(batches.window_numbers(step).tolist()):
        start = window * context
        stop = min(start + context + 1, len(stream))
        for row in documents.within(start, stop):
            begin, end = max(start, row.first), min(stop, row.first + row.tokens)
            text = documents.text(row)
            encoding = tokenizer.encoding(text)
            if len(encoding.ids) + 2 != row.tokens:
                raise StageError(
                    f"document {row.id} has {len(encoding.ids) + 2} tokens, but {row.tokens} were written: "
                    f"{tokens} was not made from {snapshot}"
                )
            # The first and the last token of a document are its marks, without characters.
            spans = encoding.offsets[max(0, begin - row.first - 1) : max(0, end - row.first - 1)]
            first, last = (spans[0][0], spans[-1][1]) if spans else (0, 0)
            yield Piece(sequence, begin - start, end - begin, row.id, row.copy, first, last, text[first:last])


@dataclass(frozen=True)
class _Row:
    id: str
    copy: int
    first: int
    """its first token, in the split"""
    tokens: int
    file: TokenFile
    number: int
    """which of the file's documents it is"""


class _Documents:
    """The documents of the training split, by the places of their tokens."""

    def __init__(self, tokens: Path, snapshot: Path, index: TokenIndex) -> None:
        self._tokens, self._snapshot = tokens, snapshot
        self._files = index.splits["train"]
        self._ends = np.cumsum([file.tokens for file in self._files])

    def within(self, start: int, stop: int) -> Iterator[_Row]:
        """The documents with a token from ``start`` to before ``stop``."""
        import pyarrow.parquet as pq

        for file, end in zip(self._files, self._ends.tolist(), strict=True):
            before = end - file.tokens
            if end <= start or before >= stop:
                continue
            table = pq.read_table(documents_path(self._tokens, file.file))
            counts = table.column("tokens").to_numpy()
            ends = np.cumsum(counts) + before
            first = int(np.searchsorted(ends, start, side="right"))
            for number in range(first, len(counts)):
                begin = int(ends[number] - counts[number])
                if begin >= stop:
                    break
                name, copy = (table.column(column)[number].as_py() for column in ("id", "copy"))
                yield _Row(name, copy, begin, int(counts[number]), file, number)

    def text(self, row: _Row) -> str:
        """A document's text, from the part of the snapshot that its token file was made of."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        part = self._snapshot / "documents" / f"part-{row.file.file.split('-')[1].split('.')[0]}.parquet"
        if not part.exists():
            raise StageError(f"{part} does not exist, but {row.file.file} was made of it")
        wanted: Any = (pc.field("id") == row.id) & (pc.field("copy") == row.copy)
        found = pq.read_table(part, columns=["text"], filters=wanted).column("text")
        if len(found) != 1:
            raise StageError(f"{part} does not hold copy {row.copy} of document {row.id} once")
        return found[0].as_py()
