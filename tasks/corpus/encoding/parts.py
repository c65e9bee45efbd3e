"""One part of a snapshot to token files: read, cut into slices, encoded, written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.corpus.encoding.slices import Slice, batches, slices
from tasks.corpus.encoding.splits import GROUPS, EncodedSplit, Layout, Split
from tasks.stage import StageError
from tasks.training.chat import ChatTokenizer

if TYPE_CHECKING:
    import pyarrow
    from tokenizers import Encoding

SPLITS = ("train", "validation")
_DOCUMENTS_AT_ONCE = 64
_CHARACTERS_AT_ONCE = 2**20
"""Text that is encoded together: its encodings take about a hundred times as many bytes."""


def encode_part(
    number: int, part: Path, name: str, tokenizer: ChatTokenizer, out: Path, layout: Layout
) -> list[EncodedSplit]:
    """Write the token files of one part of a snapshot, one for each split that has documents.

    ``number`` names the files, ``name`` is the part's path within the snapshot. The threads of the library
    encode a batch while this one writes the batch before.

    Raises:
        StageError: the part holds text that is not UTF-8.
    """
    splits = {
        split: Split(split, name, f"{split}-{number:05d}.bin", out, layout, tokenizer) for split in SPLITS
    }
    given = _slices(part, splits, layout.slice_characters)
    offsets = layout.bytes_V is None
    for together, encodings in _encoded(tokenizer, batches(given, _CHARACTERS_AT_ONCE), offsets):
        for piece, encoding in zip(together, encodings, strict=True):
            splits[piece.split].add(piece, encoding)
        for split in splits.values():
            split.flush()
    finished = [split.finish() for split in splits.values()]
    return [split for split in finished if split is not None]


def read_rows(part: Path, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a part in order, a bounded number at a time."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(part) as file:
        yield from file.iter_batches(batch_size=_DOCUMENTS_AT_ONCE, columns=columns)


def texts_of(rows: pyarrow.RecordBatch, part: Path) -> list[str]:
    """The texts of some rows.

    Raises:
        StageError: naming the document whose text is not UTF-8.
    """
    try:
        return rows.column("text").to_pylist()
    except UnicodeDecodeError:
        raise StageError(f"{part}: the text of document {_broken(rows)} is not UTF-8") from None


def _broken(rows: pyarrow.RecordBatch) -> str:
    import pyarrow as pa

    for id, text in zip(
        rows.column("id").to_pylist(), rows.column("text").cast(pa.binary()).to_pylist(), strict=True
    ):
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            return f"{id} (byte {error.start})"
    return "?"


def _slices(part: Path, splits: dict[str, Split], least: int) -> Iterator[Slice]:
    import pyarrow.compute as pc

    for rows in read_rows(part, ["id", "copy", "text", "split", *GROUPS]):
        for name, split in splits.items():
            chosen = rows.filter(pc.field("split") == name)
            texts = texts_of(chosen, part)
            if not texts:
                continue
            lengths = pc.call_function("binary_length", [chosen.column("text")])
            split.text_bytes += sum(lengths.to_pylist())
            split.take(chosen.select(["id", "copy", *GROUPS]), texts)
            for text in texts:
                yield from slices(name, text, least)


def _encoded(
    tokenizer: ChatTokenizer, given: Iterable[list[Slice]], offsets: bool
) -> Iterator[tuple[list[Slice], list[Encoding]]]:
    """Each batch with its encodings; the next one is read and encoded meanwhile."""
    with ThreadPoolExecutor(1) as ahead:
        before = None
        for together in given:
            texts = [piece.text for piece in together]
            waiting = together, ahead.submit(tokenizer.encodings, texts, offsets)
            if before is not None:
                yield before[0], before[1].result()
            before = waiting
        if before is not None:
            yield before[0], before[1].result()
