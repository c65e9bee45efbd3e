"""Token files, mapped into memory: packed sequences to train on, documents back to back to score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.corpus.encoding.index import INDEX, TokenFile, TokenIndex
from tasks.corpus.encoding.tables import map_pieces, read_documents
from tasks.stage import StageError

_TOKENS_AT_ONCE = 2**22


@dataclass(frozen=True)
class Sequences:
    """Some packed sequences of S tokens.

    Attributes:
        tokens_BS: int64.
        segments_BS: which piece of a document each token is of, counted from 0 in its row; padding has the
            number behind the last (int32).
        used_B: how many tokens of each row are no padding (int64).
    """

    tokens_BS: np.ndarray
    segments_BS: np.ndarray
    used_B: np.ndarray


@dataclass(frozen=True)
class PieceRow:
    """A row of a table of pieces, as `tasks.corpus.encoding.tables.PIECES` tells."""

    position: int
    tokens: int
    document: int
    first: int
    start: int
    end: int


class PackedSequences:
    """The sequences of the training split, numbered through its files."""

    def __init__(self, directory: Path, index: TokenIndex) -> None:
        """Map the files and their tables of pieces.

        Raises:
            StageError: naming the file that is missing or does not fit the index.
        """
        self.directory = directory
        self.files = _files(directory, index, "train")
        self.vocab_size = index.vocab_size
        self.context = index.context
        size = index.context + 1
        self._tokens: list[np.ndarray] = []
        self._pieces: list[dict[str, np.ndarray]] = []
        for file in self.files:
            if file.sequences is None or file.pieces is None:
                raise StageError(f"{directory / INDEX} lists {file.file} without sequences: run encode again")
            tokens_N = _map(directory / file.file, file.sequences * size, _dtype(index))
            self._tokens.append(tokens_N.reshape(file.sequences, size))
            self._pieces.append(map_pieces(directory / file.pieces.file))
        self._ends = np.cumsum([len(rows_RS) for rows_RS in self._tokens])

    def __len__(self) -> int:
        """Number of sequences."""
        return int(self._ends[-1])

    def read(self, numbers_B: np.ndarray) -> Sequences:
        """The sequences of these numbers, in their order.

        Raises:
            StageError: naming the file with a token outside the vocabulary.
        """
        tokens_BS = np.empty((len(numbers_B), self.context + 1), np.int64)
        segments_BS = np.empty(tokens_BS.shape, np.int32)
        used_B = np.empty(len(numbers_B), np.int64)
        for row, number in enumerate(numbers_B.tolist()):
            file, within = self._place(number)
            tokens_BS[row] = self._tokens[file][within]
            counts = self._pieces[file]["tokens"][self._rows(file, within)]
            segments_S = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
            used_B[row] = len(segments_S)
            segments_BS[row, : len(segments_S)] = segments_S
            segments_BS[row, len(segments_S) :] = len(counts)
            if tokens_BS[row].max() >= self.vocab_size:
                raise StageError(
                    _outside(self.directory / self.files[file].file, tokens_BS[row], self.vocab_size)
                )
        return Sequences(tokens_BS, segments_BS, used_B)

    def pieces(self, number: int) -> tuple[TokenFile, list[PieceRow]]:
        """The file that a sequence lies in, and its pieces from left to right."""
        file, within = self._place(number)
        rows = self._rows(file, within)
        columns = [self._pieces[file][name][rows].tolist() for name in PieceRow.__dataclass_fields__]
        return self.files[file], [PieceRow(*values) for values in zip(*columns, strict=True)]

    def targets(self) -> Iterator[np.ndarray]:
        """Every token that is a target in training, some at a time: all but the first of each piece."""
        at_once = max(1, _TOKENS_AT_ONCE // (self.context + 1))
        for first in range(0, len(self), at_once):
            found = self.read(np.arange(first, min(first + at_once, len(self))))
            yield found.tokens_BS[:, 1:][target_mask(found)]

    def _place(self, number: int) -> tuple[int, int]:
        file = int(np.searchsorted(self._ends, number, side="right"))
        return file, number - int(self._ends[file]) + len(self._tokens[file])

    def _rows(self, file: int, within: int) -> slice:
        sequence_P = self._pieces[file]["sequence"]
        # Of the column's own type, else numpy would convert all of it.
        low, high = np.searchsorted(sequence_P, np.array([within, within + 1], sequence_P.dtype))
        return slice(int(low), int(high))


class TokenStream:
    """The documents of a split that is not packed, back to back, one file after the other."""

    def __init__(self, directory: Path, index: TokenIndex, split: str) -> None:
        """Map the files and read where documents end.

        Raises:
            StageError: naming the file that is missing or does not fit the index.
        """
        files = _files(directory, index, split)
        self.vocab_size = index.vocab_size
        self.paths = [directory / entry.file for entry in files]
        self.bytes = sum(entry.bytes for entry in files)
        self._parts = [
            _map(path, entry.tokens, _dtype(index)) for path, entry in zip(self.paths, files, strict=True)
        ]
        self._ends = np.cumsum([entry.tokens for entry in files])
        self.ends_D = np.cumsum(np.concatenate([_lengths(directory, entry) for entry in files]))
        """where each document ends, exclusive; it begins where the one before ends"""

    @property
    def scored(self) -> int:
        """Number of tokens that have one of the same document before them."""
        return len(self) - int(np.count_nonzero(np.diff(self.ends_D, prepend=0)))

    def __len__(self) -> int:
        """Number of tokens."""
        return int(self._ends[-1])

    def read(self, start: int, length: int) -> np.ndarray:
        """``length`` tokens (int64) from position ``start``, across files; fewer at the end of the split.

        Raises:
            StageError: naming the file with a token outside the vocabulary.
        """
        pieces = []
        stop = min(start + length, len(self))
        part = int(np.searchsorted(self._ends, start, side="right"))
        while start < stop:
            begin = int(self._ends[part]) - len(self._parts[part])
            piece = self._parts[part][start - begin : stop - begin].astype(np.int64)
            if piece.size and piece.max() >= self.vocab_size:
                raise StageError(_outside(self.paths[part], piece, self.vocab_size))
            pieces.append(piece)
            start += len(piece)
            part += 1
        return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


def target_mask(sequences: Sequences) -> np.ndarray:
    """Whether each token but a row's first is a target (bool, of shape (B, S - 1)): no padding, and of the
    same piece as the token before, since nothing in a row tells how another document begins."""
    segments_BS = sequences.segments_BS
    filled_BT = np.arange(1, segments_BS.shape[1]) < sequences.used_B[:, None]
    return (segments_BS[:, 1:] == segments_BS[:, :-1]) & filled_BT


def _files(directory: Path, index: TokenIndex, split: str) -> list[TokenFile]:
    files = index.splits.get(split)
    if not files:
        raise StageError(f"{directory / INDEX} lists no files of the split `{split}`")
    return files


def _dtype(index: TokenIndex) -> np.dtype:
    return np.dtype(index.dtype).newbyteorder("<")


def _lengths(directory: Path, entry: TokenFile) -> np.ndarray:
    """Tokens of each document of a file."""
    path = directory / entry.table.file
    lengths_D = read_documents(path, ["tokens"]).column("tokens").to_numpy()
    if lengths_D.sum() != entry.tokens:
        raise StageError(
            f"{path} has documents of {lengths_D.sum()} tokens, but {INDEX} says {entry.tokens}: run encode "
            "again"
        )
    return lengths_D


def _outside(path: Path, ids: np.ndarray, vocab_size: int) -> str:
    return (
        f"{path} holds token {ids.max()}, but the vocabulary has {vocab_size}; the file does not belong to "
        "this index"
    )


def _map(path: Path, tokens: int, dtype: np.dtype) -> np.ndarray:
    if not path.is_file():
        raise StageError(f"{path} does not exist, but {INDEX} lists it")
    expected, found = tokens * dtype.itemsize, path.stat().st_size
    if found != expected:
        raise StageError(
            f"{path} has {found} bytes, but {INDEX} says {tokens} tokens, which are {expected}. "
            "It is cut short or not of this index: run encode again."
        )
    return np.memmap(path, dtype, mode="r") if tokens else np.empty(0, dtype)
