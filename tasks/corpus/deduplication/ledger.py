"""The ledger of the documents that deduplication removes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpus.deduplication.arrays import mapped_array
from tasks.corpus.deduplication.choosing import REMOVAL
from tasks.corpus.deduplication.ids import hexadecimal, numbers_of
from tasks.corpus.deduplication.method import Method
from tasks.records import REMOVED, ledger_schema

if TYPE_CHECKING:
    import pyarrow

ROWS_IN_A_PART = 2_000_000
EXACT_RULE = "exact_duplicate"


@dataclass(frozen=True)
class Removals:
    """What a method removed: its files of `tasks.corpus.deduplication.choosing.REMOVED`."""

    method: Method
    files: Sequence[Path]


@dataclass(frozen=True)
class LedgerWriter:
    """Writes parts of the ledger.

    ``removals`` are in the order in which methods went over the documents; ``others`` are Parquet files with
    documents that go for other reasons: id, rule, value, threshold, detail.
    """

    folder: Path
    parts: int
    removals: Sequence[Removals]
    others: Sequence[Path] = ()

    def write(self, part: int) -> Counter[str]:
        """Write the entries of a range of ids, ascending; returns how many there are of each rule."""
        import pyarrow.parquet as pq

        tables = []
        for place, removals in enumerate(self.removals):
            rows = np.concatenate([np.empty(0, REMOVAL), *map(self._of_part(part), removals.files)])
            for later in self.removals[place + 1 :]:
                _carry_on(rows, later)
            tables.append(_entries(rows, removals.method))
        tables += map(self._others_of_part(part), self.others)
        table = _sorted(tables)
        pq.write_table(
            table, self.folder / f"part-{part:05d}.parquet", compression="zstd", row_group_size=1_000_000
        )
        rules = table.group_by("rule").aggregate([([], "count_all")]).to_pylist()
        return Counter({row["rule"]: row["count_all"] for row in rules})

    def _of_part(self, part: int) -> Callable[[Path], np.ndarray]:
        """Reads the removals of a file whose ids are in the range of a part."""

        def read(path: Path) -> np.ndarray:
            held = mapped_array(path)
            return held[self._is_of_part(part, held["id"])]

        return read

    def _others_of_part(self, part: int) -> Callable[[Path], pyarrow.Table]:
        """The same for the other reasons."""

        def read(path: Path) -> pyarrow.Table:
            import pyarrow as pa
            import pyarrow.parquet as pq

            held = pq.read_table(path)
            of_part = self._is_of_part(part, numbers_of(held.column("id").combine_chunks()))
            held = held.filter(pa.array(of_part))
            for name, value in (("stage", "dedup"), ("verdict", REMOVED)):
                held = held.append_column(name, pa.array([value] * len(held), pa.string()))
            return held.select(ledger_schema().names).cast(ledger_schema())

        return read

    def _is_of_part(self, part: int, ids_N2: np.ndarray) -> np.ndarray:
        low, high = (2**64 * number // self.parts for number in (part, part + 1))
        return (ids_N2[:, 0] >= np.uint64(low)) & (ids_N2[:, 0] <= np.uint64(high - 1))


def ledger_parts(removed: int) -> int:
    """How many parts a ledger of so many entries has."""
    return max(1, -(-removed // ROWS_IN_A_PART))


def _carry_on(rows: np.ndarray, later: Removals) -> None:
    """Where a later method removed what was kept, name what it kept instead."""
    for path in later.files:
        held = mapped_array(path)
        places = np.minimum(np.searchsorted(held["number"], rows["kept"]), max(0, len(held) - 1))
        if len(held):
            found_R = held["number"][places] == rows["kept"]
            for name, value in (("kept_id", "kept_id"), ("kept", "kept")):
                rows[name][found_R] = held[value][places[found_R]]


def _entries(rows: np.ndarray, method: Method) -> pyarrow.Table:
    import pyarrow as pa

    exact_R = rows["exact"]
    rules = np.where(exact_R, EXACT_RULE, method.rule)
    columns = [
        hexadecimal(rows["id"]), pa.array(["dedup"] * len(rows), pa.string()),
        pa.array(rules.tolist(), pa.string()),
        pa.array(rows["similarity"]), pa.array(np.where(exact_R, 1.0, method.threshold)),
        pa.array([REMOVED] * len(rows), pa.string()), hexadecimal(rows["kept_id"]),
    ]  # fmt: skip
    return pa.Table.from_arrays(columns, schema=ledger_schema())


def _sorted(tables: list[pyarrow.Table]) -> pyarrow.Table:
    import pyarrow as pa

    return pa.concat_tables(tables).sort_by("id").combine_chunks()
