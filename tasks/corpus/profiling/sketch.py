"""What is held of the documents of one source in one layer while they pass: integers and sketches that add
up, whatever the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tasks.corpus.profiling.distinct import Distinct, merge_distinct, nothing_seen, seen
from tasks.corpus.profiling.histograms import LENGTH_EDGES, SIGNAL_EDGES, binned
from tasks.corpus.profiling.results import UNKNOWN
from tasks.corpus.profiling.word_features import DIMENSIONS, bags, ngram_hashes, ngrams_of
from tasks.corpus.scoring.columns import signals_matrix
from tasks.corpus.scoring.segments import Words, segment_words

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("text", "content", "source", "kind", "domain", "language", "language_score", "signals")
"""What is read of a layer."""

NGRAMS = (1, 2, 3)

AMOUNTS = ("documents", "characters", "words", "bytes")
"""What `Sketch.cells` counts, in this order."""


class Cell(NamedTuple):
    """The properties by which amounts are told apart."""

    kind: str
    domain: str
    language: str


@dataclass(frozen=True)
class Topics:
    """Unit vectors of documents, summed up (see `bags`)."""

    vectors: int
    """documents with words"""
    sum_V: np.ndarray
    squares: int
    """sum of the vectors' squared lengths, which rounding leaves near UNIT²"""


@dataclass(frozen=True)
class Sketch:
    """Some documents of one source."""

    cells: dict[Cell, np.ndarray]
    """int64, one for each of `AMOUNTS`"""
    empty: int
    replaced_characters: int
    lengths: dict[str, np.ndarray]
    """by kind, in the bins of `LENGTH_EDGES`"""
    signals: dict[str, np.ndarray]
    """in the bins of `SIGNAL_EDGES`"""
    ngrams: dict[int, Distinct]
    ngram_totals: dict[int, int]
    contents: Distinct
    topics: Topics


def add_batch(known: dict[str, Sketch], batch: pa.RecordBatch, size: int) -> None:
    """Add the documents of a batch with the columns `COLUMNS` to the sketches of their sources.

    ``size`` is that of the sketches of distinct things.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = batch.column("text").fill_null("")
    words = segment_words(texts)
    amounts_DA = np.ones((batch.num_rows, len(AMOUNTS)), np.int64)
    amounts_DA[:, 1] = pc.call_function("utf8_length", [texts])
    amounts_DA[:, 2] = np.diff(words.offsets_D1)
    amounts_DA[:, 3] = pc.call_function("binary_length", [texts])
    names, signals_DS = signals_matrix(batch.column("signals"))
    scores = batch.column("language_score").cast(pa.float64()).to_numpy(zero_copy_only=False)
    documents = _Documents(
        cells=[Cell(*found) for found in zip(*(_names(batch, name) for name in Cell._fields), strict=True)],
        amounts_DA=amounts_DA,
        words=words,
        bags_DV=bags(words),
        contents_D=_leading_bits(batch.column("content").to_pylist()),
        signals={name: signals_DS[:, number] for number, name in enumerate(names)}
        | {"language_score": scores},
    )
    sources = np.array(_names(batch, "source"), object)
    for source in sorted(set(sources)):
        before = known.get(source) or empty_sketch(size)
        known[source] = merge_sketches(
            [before, _sketch(documents, np.flatnonzero(sources == source), before)]
        )


def merge_sketches(sketches: Sequence[Sketch]) -> Sketch:
    """The sketch of all documents of the given ones (one at least)."""
    return Sketch(
        cells=_added([one.cells for one in sketches]),
        empty=sum(one.empty for one in sketches),
        replaced_characters=sum(one.replaced_characters for one in sketches),
        lengths=_added([one.lengths for one in sketches]),
        signals=_added([one.signals for one in sketches]),
        ngrams={n: merge_distinct([one.ngrams[n] for one in sketches]) for n in NGRAMS},
        ngram_totals={n: sum(one.ngram_totals[n] for one in sketches) for n in NGRAMS},
        contents=merge_distinct([one.contents for one in sketches]),
        topics=Topics(
            sum(one.topics.vectors for one in sketches),
            np.sum([one.topics.sum_V for one in sketches], axis=0),
            sum(one.topics.squares for one in sketches),
        ),
    )


def empty_sketch(size: int) -> Sketch:
    """The sketch of no document."""
    nothing = nothing_seen(size)
    return Sketch(
        cells={}, empty=0, replaced_characters=0, lengths={}, signals={},
        ngrams=dict.fromkeys(NGRAMS, nothing), ngram_totals=dict.fromkeys(NGRAMS, 0), contents=nothing,
        topics=Topics(0, np.zeros(DIMENSIONS, np.int64), 0),
    )  # fmt: skip


@dataclass(frozen=True)
class _Documents:
    """A batch, measured."""

    cells: list[Cell]
    amounts_DA: np.ndarray
    words: Words
    bags_DV: np.ndarray
    contents_D: np.ndarray
    signals: dict[str, np.ndarray]


def _sketch(documents: _Documents, of_D: np.ndarray, before: Sketch) -> Sketch:
    """The documents with the numbers ``of_D``; n-grams that change nothing in ``before`` are left out."""
    cells, characters_D = [documents.cells[d] for d in of_D], documents.amounts_DA[of_D, 1]
    bags_DV = documents.bags_DV[of_D]
    squares_D = (bags_DV**2).sum(axis=1)
    replaced = documents.signals.get("replaced_characters")
    nothing = nothing_seen(before.contents.size)
    return Sketch(
        cells=_cells(cells, documents.amounts_DA[of_D]),
        empty=int((characters_D == 0).sum()),
        replaced_characters=0 if replaced is None else int(np.nansum(replaced[of_D])),
        lengths=_lengths([cell.kind for cell in cells], characters_D),
        signals={
            name: binned(documents.signals[name][of_D], edges)
            for name, edges in SIGNAL_EDGES.items()
            if name in documents.signals
        },
        ngrams={
            n: seen(nothing, ngram_hashes(documents.words, of_D, n, before.ngrams[n].limit)) for n in NGRAMS
        },
        ngram_totals={n: ngrams_of(documents.words, of_D, n) for n in NGRAMS},
        contents=seen(nothing, documents.contents_D[of_D]),
        topics=Topics(int((squares_D > 0).sum()), bags_DV.sum(axis=0), int(squares_D.sum())),
    )


def _names(batch: pa.RecordBatch, column: str) -> list[str]:
    return batch.column(column).fill_null(UNKNOWN).to_pylist()


def _leading_bits(digits_D: Sequence[str]) -> np.ndarray:
    """The first 64 bits of hexadecimal hashes."""
    return np.frombuffer(bytes.fromhex("".join(digits[:16] for digits in digits_D)), ">u8").astype(np.uint64)


def _cells(cells_D: Sequence[Cell], amounts_DA: np.ndarray) -> dict[Cell, np.ndarray]:
    found: dict[Cell, np.ndarray] = {}
    for cell, amounts in zip(cells_D, amounts_DA, strict=True):
        found[cell] = found[cell] + amounts if cell in found else amounts
    return found


def _lengths(kinds_D: Sequence[str], characters_D: np.ndarray) -> dict[str, np.ndarray]:
    kinds = np.array(kinds_D, object)
    return {
        kind: binned(characters_D[kinds == kind].astype(np.float64), LENGTH_EDGES) for kind in set(kinds_D)
    }


def _added(parts: Sequence[dict]) -> dict:
    total: dict = {}
    for part in parts:
        for key, counts in part.items():
            total[key] = total[key] + counts if key in total else counts
    return total
