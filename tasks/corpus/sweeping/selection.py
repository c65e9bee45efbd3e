"""Which documents a sweep looks at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tasks.parameters import nearest

if TYPE_CHECKING:
    import pyarrow as pa


class SweepError(Exception):
    """Bad input: the message says what is wrong and what would be right."""


@dataclass(frozen=True)
class Selection:
    """The documents that a sweep looks at; None: all."""

    sources: Sequence[str] | None = None
    kinds: Sequence[str] | None = None
    languages: Sequence[str] | None = None

    def wanted(self) -> dict[str, list[str]]:
        """Column → values, of those that are restricted."""
        given = {"source": self.sources, "kind": self.kinds, "language": self.languages}
        return {column: list(values) for column, values in given.items() if values is not None}


@dataclass
class Selecting:
    """A selection at work: it remembers the values of each column that went by."""

    wanted: dict[str, list[str]]
    seen: dict[str, set[str]] = field(
        default_factory=lambda: {"source": set(), "kind": set(), "language": set()}
    )

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The documents of a batch that are wanted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for column, values in self.seen.items():
            values.update(batch.column(column).unique().to_pylist())
        for column, values in self.wanted.items():
            among = pc.SetLookupOptions(pa.array(values, pa.string()))
            batch = batch.filter(pc.call_function("is_in", [batch.column(column)], among))
        return batch

    def refuse_what_is_nowhere(self) -> None:
        """Raise if a value that was asked for is in no document."""
        for column, values in self.wanted.items():
            for value in values:
                if value not in self.seen[column]:
                    known = sorted(map(str, self.seen[column]))
                    raise SweepError(f"no document has the {column} {value}; {nearest(value, known)}")
