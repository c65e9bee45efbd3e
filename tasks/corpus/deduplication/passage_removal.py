"""A part of a layer without the passages that are repeated, and what went of it."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tasks.corpus.deduplication.passage_counts import RepeatedPassages
from tasks.corpus.deduplication.passage_keys import KeyedPassages, RepeatedPassagesParams, keyed_passages
from tasks.corpus.deduplication.passages import LINE
from tasks.layer_files import reading
from tasks.records import content_hash

RULE = "repeated_passages"

LEDGER = {
    "id": "string", "rule": "string", "value": "double", "threshold": "double", "detail": "string",
}  # fmt: skip
"""The columns of the documents that are left without text."""

EVIDENCE = {
    "source": "string", "unit": "string", "passage": "string", "text": "string", "documents": "bigint",
    "occurrences": "bigint",
}  # fmt: skip
"""The columns of what went: ``passage`` is the key in hexadecimal digits, ``text`` the beginning."""

LOSSES = {
    "source": "string", "occurrences": "bigint", "characters": "bigint", "changed": "bigint",
    "removed": "bigint",
}  # fmt: skip
"""The columns of what a source lost."""

EVIDENCE_CHARACTERS = 200


@dataclass
class _Removals:
    """What went of a part so far."""

    losses: defaultdict[str, defaultdict[str, int]]
    evidence: dict[tuple[str, int], dict[str, Any]]
    ledger: list[dict[str, Any]]


@dataclass(frozen=True)
class PartWriter:
    """Writes the parts of a layer: the documents into ``documents``, and what went into the other two."""

    params: RepeatedPassagesParams
    repeated: Path
    documents: Path
    evidence: Path
    ledger: Path

    def write(self, part: Path) -> list[dict[str, Any]]:
        """Write one part, a row group at a time; returns the rows of `LOSSES`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        repeated = RepeatedPassages(self.repeated)
        gone = _Removals(defaultdict(lambda: defaultdict(int)), {}, [])
        unfinished = self.documents / f".{part.name}.{os.getpid()}"
        with (
            reading(part),
            pq.ParquetFile(part) as file,
            pq.ParquetWriter(unfinished, file.schema_arrow, compression="zstd") as kept,
        ):
            for number in range(file.num_row_groups):
                rows = self._without_repeated(file.read_row_group(number), repeated, gone)
                if rows.num_rows:
                    kept.write_table(rows, row_group_size=2**31 - 1)
        for folder, columns, found in (
            (self.evidence, EVIDENCE, list(gone.evidence.values())),
            (self.ledger, LEDGER, gone.ledger),
        ):
            beside = folder / f".{part.name}.{os.getpid()}"
            pq.write_table(pa.Table.from_pylist(found, arrow_schema(columns)), beside)
            beside.replace(folder / part.name)
        unfinished.replace(self.documents / part.name)
        return [{"source": source} | lost for source, lost in gone.losses.items()]

    def _without_repeated(self, rows: Any, repeated: RepeatedPassages, gone: _Removals) -> Any:
        """The rows of a row group (tables of Arrow, both) that have text left."""
        import pyarrow as pa

        found = keyed_passages(rows, self.params)
        documents_P = repeated.documents_with(found.keys_P)
        gone_P = np.flatnonzero(documents_P > 0)
        if not len(gone_P):
            return rows
        texts, contents = (rows.column(name).to_pylist() for name in ("text", "content"))
        ids, sources = (rows.column(name).to_pylist() for name in ("id", "source"))
        stays_D = np.ones(len(texts), bool)
        changed, firsts = np.unique(found.document_P[gone_P], return_index=True)
        for d, places in zip(changed.tolist(), np.split(gone_P, firsts[1:]), strict=True):
            text = _stripped(texts[d], sources[d], found, places, documents_P, gone)
            lost = gone.losses[sources[d]]
            lost["characters"] += len(texts[d]) - len(text)
            lost["changed" if text.strip() else "removed"] += 1
            if not text.strip():
                stays_D[d] = False
                gone.ledger.append(self._entry(ids[d], sources[d], documents_P[places]))
            texts[d], contents[d] = text, content_hash(text)
        for name, values in (("text", texts), ("content", contents)):
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(
                place, rows.schema.field(name), pa.array(values, rows.schema.field(name).type)
            )
        return rows.filter(pa.array(stays_D))

    def _entry(self, name: str, source: str, documents_P: np.ndarray) -> dict[str, Any]:
        among = f"source {source}" if self.params.by == "source" else "the corpus"
        return {
            "id": name,
            "rule": RULE,
            "value": float(documents_P.min()),
            "threshold": float(self.params.more_than),
            "detail": f"all of its text is in more than {self.params.more_than} documents of {among}",
        }


def without_lines(text: str, removed: set[int]) -> str:
    """A text without the lines of these numbers.

    Of the blank lines around what goes those before it stay, else one that is behind it; none where nothing
    else is before or behind.
    """
    kept: list[str] = []
    cut = begun = False
    for number, line in enumerate(text.split("\n")):
        if number in removed:
            cut = True
            kept = kept if begun else []
        elif line.strip():
            kept.append(line)
            cut, begun = False, True
        elif not cut or (kept and kept[-1].strip()):
            kept.append(line)
    while cut and kept and not kept[-1].strip():
        kept.pop()
    return "\n".join(kept)


def arrow_schema(columns: dict[str, str]) -> Any:
    """Columns as Arrow has them."""
    import pyarrow as pa

    types = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def _stripped(
    text: str, source: str, found: KeyedPassages, places: np.ndarray, documents_P: np.ndarray, gone: _Removals
) -> str:
    """A text without the passages at these places; notes what they are."""
    lines = text.split("\n")
    removed: set[int] = set()
    # Paragraphs first: a line of one that goes is not counted once more.
    for place in sorted(places.tolist(), key=lambda place: (found.kinds_P[place] == LINE, place)):
        first, last = int(found.first_P[place]), int(found.last_P[place])
        if first in removed:
            continue
        removed.update(range(first, last + 1))
        key = int(found.keys_P[place])
        shown = "\n".join(lines[first : last + 1]).strip()[:EVIDENCE_CHARACTERS]
        entry = gone.evidence.setdefault(
            (source, key),
            {
                "source": source,
                "unit": "line" if found.kinds_P[place] == LINE else "paragraph",
                "passage": f"{key:016x}",
                "text": shown,
                "documents": int(documents_P[place]),
                "occurrences": 0,
            },
        )
        # One key has texts of other case or spacing: the smallest is shown, whichever comes first.
        entry["text"] = min(entry["text"], shown)
        entry["occurrences"] += 1
        gone.losses[source]["occurrences"] += 1
    return without_lines(text, removed)
