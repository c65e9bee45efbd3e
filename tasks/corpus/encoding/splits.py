"""The token file of one split of one part of the snapshot, with its tables: a stream, or packed sequences."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from tasks.corpus.encoding.index import ListedFile, TokenFile
from tasks.corpus.encoding.packing import Packing, pack
from tasks.corpus.encoding.rows import packed_rows
from tasks.corpus.encoding.slices import Slice
from tasks.corpus.encoding.spans import token_spans
from tasks.corpus.encoding.tables import documents_name, pieces_name, write_documents, write_pieces
from tasks.corpus.fertility import FertilityCounts, TokenKinds
from tasks.corpus.snapshot import file_sha256
from tasks.training.chat import ChatTokenizer

if TYPE_CHECKING:
    import pyarrow
    from tokenizers import Encoding

GROUPS = ("source", "kind", "domain", "language")
"""Columns by whose values tokens are counted."""

TokenCounts = dict[str, dict[str, int]]
"""Tokens by group and value."""


@dataclass(frozen=True)
class Layout:
    """How token files are laid out.

    Attributes:
        dtype: ``uint16`` or ``uint32``.
        sequence_tokens: the length of a packed sequence.
        bos: the token before every document; None for none.
        eos: the token behind every document; None for none.
        pad: what fills a sequence up.
        slice_characters: how long the slices are at least in which texts are encoded.
        kinds: what kind of token every id is.
        bytes_V: how many bytes of text every id stands for, where tokens spell bytes; else None, and the
            library tells the characters of each token, which takes it longer.
    """

    dtype: str
    sequence_tokens: int
    bos: int | None
    eos: int | None
    pad: int
    slice_characters: int
    kinds: TokenKinds
    bytes_V: np.ndarray | None


@dataclass(frozen=True)
class EncodedSplit:
    """What became of one split of one part: its file, and what was counted in it."""

    split: str
    file: TokenFile
    counts: TokenCounts
    measured: FertilityCounts
    cut_documents: int


@dataclass
class Split:
    """The documents of a split as they come: their rows from the snapshot, their tokens to a file.

    Attributes:
        name: ``train`` or ``validation``; the documents of ``train`` are packed.
        part: the file of the snapshot, relative to it.
        file: the name of the token file.
        out: the directory of tokens.
    """

    name: str
    part: str
    file: str
    out: Path
    layout: Layout
    tokenizer: ChatTokenizer
    measured: FertilityCounts = field(default_factory=FertilityCounts)
    text_bytes: int = 0
    _taken: int = 0
    _rows: list[pyarrow.RecordBatch] = field(default_factory=list)
    _lengths: list[int] = field(default_factory=list)
    _characters: list[int] = field(default_factory=list)
    _cut_starts: list[int] = field(default_factory=list)
    _cut_ends: list[int] = field(default_factory=list)
    _held: list[np.ndarray] = field(default_factory=list)
    _at: int = 0

    def __post_init__(self) -> None:
        self._dtype = np.dtype(self.layout.dtype).newbyteorder("<")
        self._stream = self.out / f".{self.file}.{os.getpid()}"
        self._written: IO[bytes] = self._stream.open("wb")
        bos, eos = self.layout.bos, self.layout.eos
        self._begin = np.array([] if bos is None else [bos], self._dtype)
        self._end = np.array([] if eos is None else [eos], self._dtype)

    @property
    def packed(self) -> bool:
        """Whether the documents are packed into sequences."""
        return self.name == "train"

    def take(self, rows: pyarrow.RecordBatch, texts: list[str]) -> None:
        """Note the rows of documents whose slices will follow, and their texts."""
        languages = [language or "und" for language in rows.column("language").to_pylist()]
        self.measured.choose(texts, languages, self._taken)
        self._rows.append(rows)
        self._taken += len(texts)

    def add(self, piece: Slice, encoding: Encoding) -> None:
        """Append the tokens of a document's next slice."""
        if piece.first:
            self._at = len(self._begin)
            self._held.append(self._begin)
        ids_T = np.array(encoding.ids, self._dtype)
        self._held.append(ids_T)
        if self.packed:
            self._note_cuts(piece, encoding, ids_T)
        self._at += len(ids_T)
        if piece.last:
            self._finish_document(piece.start + len(piece.text))

    def flush(self) -> None:
        """Write what is held."""
        if self._held:
            self._written.write(np.concatenate(self._held).data)
            self._held.clear()

    def finish(self) -> EncodedSplit | None:
        """Write the token file and its tables; None if the split has no documents."""
        self.flush()
        self._written.close()
        if not self._lengths:
            self._stream.unlink()
            return None
        lengths_D = np.array(self._lengths, np.int64)
        offsets_D = np.cumsum(lengths_D) - lengths_D
        stream_N = _map(self._stream, self._dtype)
        marks = len(self._begin), len(self._end)
        self.measured.count(
            lambda d: stream_N[offsets_D[d] + marks[0] : offsets_D[d] + lengths_D[d] - marks[1]],
            self.layout.kinds,
        )
        sequences, pieces, digest = None, None, ""
        if self.packed:
            packing = pack(lengths_D, self.layout.sequence_tokens)
            sequences = packing.sequences
            digest = self._write_sequences(packing, stream_N, offsets_D)
            self._stream.unlink()
            pieces = self._write_pieces(packing, lengths_D)
        else:
            digest = file_sha256(self._stream)
            self._stream.replace(self.out / self.file)
        file = TokenFile(
            file=self.file,
            sha256=digest,
            part=self.part,
            tokens=int(lengths_D.sum()),
            documents=len(lengths_D),
            bytes=self.text_bytes,
            table=self._write_documents(lengths_D),
            sequences=sequences,
            pieces=pieces,
        )
        cut = int((lengths_D > self.layout.sequence_tokens).sum()) if self.packed else 0
        return EncodedSplit(self.name, file, self._counts(lengths_D), self.measured, cut)

    def _note_cuts(self, piece: Slice, encoding: Encoding, ids_T: np.ndarray) -> None:
        """The characters around each place at which the document is cut: where a sequence is full."""
        size, at = self.layout.sequence_tokens, self._at
        lasts = range((-at - 1) % size, len(ids_T), size)
        firsts = range(-at % size if at else size, len(ids_T), size)
        if not lasts and not firsts:
            return
        spans = token_spans([*lasts, *firsts], piece.text, encoding, ids_T, self.layout.bytes_V)
        if spans is None:
            (encoding,) = self.tokenizer.encodings([piece.text])
            spans = token_spans([*lasts, *firsts], piece.text, encoding, ids_T, None) or []
        self._cut_ends += [piece.start + end for _, end in spans[: len(lasts)]]
        self._cut_starts += [piece.start + start for start, _ in spans[len(lasts) :]]

    def _finish_document(self, characters: int) -> None:
        size = self.layout.sequence_tokens
        if self.packed and len(self._end) and self._at and self._at % size == 0:
            self._cut_starts.append(characters)
        elif self.packed and self._at and self._at % size == 0:
            self._cut_ends.pop()  # the document ends there by itself
        self._held.append(self._end)
        self._at += len(self._end)
        self._lengths.append(self._at)
        self._characters.append(characters)

    def _write_sequences(self, packing: Packing, stream_N: np.ndarray, offsets_D: np.ndarray) -> str:
        """Row s of the file is sequence s; returns the SHA-256."""
        digest = hashlib.sha256()
        unfinished = self.out / f".{self.file}.{os.getpid()}.packed"
        with unfinished.open("wb") as file:
            for rows_RS in packed_rows(
                packing, stream_N, offsets_D, self.layout.sequence_tokens, self.layout.pad
            ):
                file.write(rows_RS.data)
                digest.update(rows_RS.data)
        unfinished.replace(self.out / self.file)
        return digest.hexdigest()

    def _write_pieces(self, packing: Packing, lengths_D: np.ndarray) -> ListedFile:
        number_P = packing.first_P // self.layout.sequence_tokens
        cuts_D = np.maximum(lengths_D - 1, 0) // self.layout.sequence_tokens
        cut_P = (np.cumsum(cuts_D) - cuts_D)[packing.document_P] + number_P
        begins_P = packing.first_P == 0
        ends_P = packing.first_P + packing.tokens_P == lengths_D[packing.document_P]
        start_P, end_P = np.zeros(len(cut_P), np.int64), np.array(self._characters)[packing.document_P]
        start_P[~begins_P] = np.array(self._cut_starts, np.int64)[cut_P[~begins_P] - 1]
        end_P[~ends_P] = np.array(self._cut_ends, np.int64)[cut_P[~ends_P]]
        columns = {
            "sequence": packing.sequence_P,
            "position": packing.position_P,
            "tokens": packing.tokens_P,
            "document": packing.document_P,
            "first": packing.first_P,
            "start": start_P,
            "end": end_P,
        }
        path = self.out / pieces_name(self.file)
        write_pieces(path, columns)
        return ListedFile(file=path.name, sha256=file_sha256(path))

    def _write_documents(self, lengths_D: np.ndarray) -> ListedFile:
        import pyarrow as pa

        rows = pa.Table.from_batches(self._rows)
        path = self.out / documents_name(self.file)
        columns = {name: rows.column(name).combine_chunks() for name in ("id", "copy")}
        columns |= {"tokens": pa.array(lengths_D), "characters": pa.array(self._characters)}
        write_documents(path, columns)
        return ListedFile(file=path.name, sha256=file_sha256(path))

    def _counts(self, lengths_D: np.ndarray) -> TokenCounts:
        import pyarrow as pa

        rows = pa.Table.from_batches(self._rows).append_column("tokens", pa.array(lengths_D))
        counts: TokenCounts = {}
        for group in GROUPS:
            summed = rows.group_by(group).aggregate([("tokens", "sum")])
            counts[group] = {}
            for value, tokens in zip(
                summed.column(group).to_pylist(), summed.column("tokens_sum").to_pylist(), strict=True
            ):
                counts[group][value or "und"] = counts[group].get(value or "und", 0) + tokens
        return counts


def _map(path: Path, dtype: np.dtype) -> np.ndarray:
    return np.asarray(np.memmap(path, dtype, "r")) if path.stat().st_size else np.empty(0, dtype)
