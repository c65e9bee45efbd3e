"""Raw documents of a batch, extracted and scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.extraction.extract import extract_text
from tasks.corpus.language import NO_LANGUAGE, detect_languages
from tasks.corpus.scoring.columns import signals_column, signals_matrix
from tasks.corpus.scoring.parts import Batch, Part
from tasks.records import KEPT, REMOVED, Finding, arrow_schema, content_hash

if TYPE_CHECKING:
    import pyarrow as pa

COLLECTED = "replaced_characters"
"""The one signal that collect has measured."""


@dataclass(frozen=True)
class Scorer:
    """The parts that measure a batch, in the order of their signals."""

    parts: Sequence[Part]

    def score(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same documents with text, language and signals; a document without text is removed."""
        import pyarrow as pa

        texts = extracted(batch)
        languages, scores = languages_of(texts, batch.column("kind").to_pylist())
        empty = Finding("empty", 0, 1, "no text is left after extraction")
        given = Batch(pa.array(texts, pa.string()), languages, [[] if text else [empty] for text in texts])
        signals = [replaced_characters(batch), *(part.score(given) for part in self.parts)]
        names = [COLLECTED, *(name for part in self.parts for name in part.names)]
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns |= {
            "text": given.array,
            "content": pa.array([content_hash(text) for text in texts]),
            "language": pa.array(languages),
            "language_score": pa.array(scores),
            "signals": signals_column(names, np.column_stack(signals)),
            "verdict": pa.array([KEPT if text else REMOVED for text in texts]),
            "findings": pa.array(
                [[vars(finding) for finding in found] for found in given.findings], findings_type()
            ),
        }
        schema = arrow_schema()
        arrays = [columns[name].cast(schema.field(name).type) for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def extracted(batch: pa.RecordBatch) -> list[str]:
    """The text of every document of a batch."""
    markups = [dict(meta).get("markup", "plain") for meta in batch.column("meta").to_pylist()]
    return [
        extract_text(raw, markup)
        for raw, markup in zip(batch.column("text").to_pylist(), markups, strict=True)
    ]


def languages_of(texts: Sequence[str], kinds: Sequence[str]) -> tuple[list[str], list[float]]:
    """The language of every text and its score; code has none."""
    languages, scores = detect_languages(texts)
    for number, kind in enumerate(kinds):
        if kind == "code":
            languages[number], scores[number] = NO_LANGUAGE, 1.0
    return languages, scores


def replaced_characters(batch: pa.RecordBatch) -> np.ndarray:
    """What collect replaced of each text, (D, 1)."""
    names, signals_DS = signals_matrix(batch.column("signals"))
    if COLLECTED not in names:
        return np.zeros((batch.num_rows, 1))
    return np.nan_to_num(signals_DS[:, [names.index(COLLECTED)]])


def findings_type() -> pa.DataType:
    """The Arrow type of the column of findings."""
    return arrow_schema().field("findings").type
