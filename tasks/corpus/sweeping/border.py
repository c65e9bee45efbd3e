"""The documents on both sides of a bound: which are nearest, and how they begin."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel

from tasks.corpus.pii.find import find_personal_data
from tasks.corpus.pii.mask import mask
from tasks.corpus.sweeping.thresholds import Side

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

EXCERPT_CHARACTERS = 200

_READ_CHARACTERS = 20_000
"""Looked through for personal data, so that none is cut in two where the excerpt ends."""

_JOINERS = "\u200c\u200d"
"""Invisible, but letters of Persian and Hindi take their form from them."""


class Example(BaseModel):
    """A document near a bound."""

    id: str
    source: str
    value: float
    excerpt: str = ""


@dataclass
class Border:
    """The ``most`` documents nearest to a bound on either side; equally near ones in the order of ids."""

    side: Side
    bound: float
    most: int
    kept: list[Example] = field(default_factory=list)
    removed: list[Example] = field(default_factory=list)

    def add(self, values_D: np.ndarray, ids: pa.Array, sources: pa.Array) -> None:
        """Look at documents; none of the values is NaN."""
        removed_D = fails(values_D, self.bound, self.side)
        for fail, found in ((False, self.kept), (True, self.removed)):
            documents = self._nearest(np.flatnonzero(removed_D == fail), values_D, ids)
            found += [
                Example(id=ids[n].as_py(), source=sources[n].as_py(), value=float(values_D[n]))
                for n in documents
            ]
            found.sort(key=lambda example: (abs(example.value - self.bound), example.id))
            del found[self.most :]

    def _nearest(self, documents: np.ndarray, values_D: np.ndarray, ids: pa.Array) -> list[int]:
        if len(documents) <= self.most:
            return documents.tolist()
        if not self.most:
            return []
        distances = np.abs(values_D[documents] - self.bound)
        nearest = documents[distances <= np.partition(distances, self.most - 1)[self.most - 1]]
        names = ids.take(nearest).to_pylist()
        order = sorted(
            range(len(nearest)), key=lambda n: (abs(float(values_D[nearest[n]]) - self.bound), names[n])
        )
        return [int(nearest[n]) for n in order[: self.most]]


def fails(values_D: np.ndarray, bound: float, side: Side) -> np.ndarray:
    """Whether each value is beyond a bound; NaN never is."""
    return values_D < bound if side == "minimum" else values_D > bound


def add_excerpts(parts: Sequence[Path], borders: Sequence[Border], mask_key: str) -> None:
    """Give every example its excerpt, reading only the row groups of ``parts`` that may have it."""
    examples = [example for border in borders for example in (*border.kept, *border.removed)]
    heads = _heads(parts, {example.id for example in examples})
    for example in examples:
        example.excerpt = excerpt(heads.get(example.id, ""), mask_key)


def excerpt(text: str, mask_key: str = "") -> str:
    """How a text begins: on one line, personal data masked, nothing in it that a terminal would obey."""
    head = text[:_READ_CHARACTERS]
    masked = mask(head, find_personal_data(head), mask_key.encode())
    line = " ".join(masked[: _READ_CHARACTERS // 2].split())
    shown = "".join(sign for sign in line if sign.isprintable() or sign in _JOINERS)
    return shown if len(shown) <= EXCERPT_CHARACTERS else f"{shown[:EXCERPT_CHARACTERS].rstrip()} …"


def _heads(parts: Sequence[Path], ids: Collection[str]) -> dict[str, str]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found: dict[str, str] = {}
    wanted = pa.array(sorted(ids), pa.string())
    for path in parts if ids else ():
        with pq.ParquetFile(path) as part:
            groups = [n for n in range(part.num_row_groups) if _may_have(part, n, ids)]
            for batch in part.iter_batches(64, row_groups=groups, columns=["id", "text"]):
                chosen = batch.filter(
                    pc.call_function("is_in", [batch.column("id")], pc.SetLookupOptions(wanted))
                )
                heads = pc.call_function(
                    "utf8_slice_codeunits", [chosen.column("text")], pc.SliceOptions(0, _READ_CHARACTERS)
                )
                found |= zip(chosen.column("id").to_pylist(), heads.to_pylist(), strict=True)
    return found


def _may_have(part: pq.ParquetFile, group: int, ids: Collection[str]) -> bool:
    column = part.schema_arrow.names.index("id")
    statistics = part.metadata.row_group(group).column(column).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    return any(statistics.min <= name <= statistics.max for name in ids)
