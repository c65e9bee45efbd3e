"""A ledger in a few lines: each rule, how many documents it spoke of, and one of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

KEPT = "kept"


@dataclass(frozen=True)
class RuleSummary:
    """One rule of a ledger, over documents that went (``kept`` False) or that stayed all the same.

    ``total`` is the sum of the measured values, which for a rule that counts (masked addresses) is a
    number of things. ``example`` is the smallest id: the same in every run.
    """

    rule: str
    kept: bool
    documents: int
    total: float
    example: str


@dataclass(frozen=True)
class LedgerSummary:
    """All rules of one ledger, by name."""

    rules: list[RuleSummary]

    def against(self, rule: str) -> RuleSummary | None:
        """What a rule says of documents that went."""
        return next((found for found in self.rules if found.rule == rule and not found.kept), None)


def summarise_ledger(ledger: Path) -> LedgerSummary | None:
    """Read ``ledger/*.parquet`` a batch at a time; None if there is no such directory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not ledger.is_dir():
        return None
    found: dict[tuple[str, bool], RuleSummary] = {}
    for part in sorted(ledger.glob("*.parquet")):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=65536, columns=["id", "rule", "value", "verdict"]):
                table = pa.Table.from_batches([batch])
                grouped = table.group_by(["rule", "verdict"]).aggregate(
                    [("id", "count"), ("id", "min"), ("value", "sum")]
                )
                for row in grouped.to_pylist():
                    key = (row["rule"], row["verdict"] == KEPT)
                    new = RuleSummary(*key, row["id_count"], float(row["value_sum"] or 0), row["id_min"])
                    found[key] = _merged(found[key], new) if key in found else new
    return LedgerSummary([found[key] for key in sorted(found)])


def _merged(left: RuleSummary, right: RuleSummary) -> RuleSummary:
    return RuleSummary(
        left.rule,
        left.kept,
        left.documents + right.documents,
        left.total + right.total,
        min(left.example, right.example),
    )
