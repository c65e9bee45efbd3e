"""A layer less the documents that a ledger removes: its parts are rewritten one by one, nothing is moved.

The general way (see `tasks.records.write_layer`) shuffles and sorts all text. Where a stage only drops
documents, what it reads is in order already, and each part can be filtered where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.records import KEPT, QUARANTINED, REMOVED, parts_of, record_lineage, write_sorted
from tasks.stage import StageParams

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

COUNTED = "part int, source string, language string, count long"


def write_filtered(
    spark: SparkSession, before: Path, ledger: DataFrame, layer: Path, stage: str, params: StageParams
) -> dict[str, Any]:
    """Write ``before`` less what is in ``ledger`` as a layer; returns the fields of its `DocumentReport`.

    ``ledger`` has, of every document that goes, ``id``, ``rule``, ``value``, ``threshold`` and ``detail``:
    one row each. Both layers are where every worker sees them. A worker holds a row group.
    """
    from pyspark.sql import functions as F

    entries = ledger.select(
        "id", F.lit(stage).alias("stage"), "rule", "value", "threshold", F.lit(REMOVED).alias("verdict"),
        "detail",
    )  # fmt: skip
    write_sorted(entries, layer / "ledger", "id", 0, then=["rule", "detail"])
    paths = parts_of(before)
    (layer / "documents").mkdir(parents=True)
    filtering = _filtered([str(path.absolute()) for path in paths], layer.absolute())
    rows = spark.range(0, len(paths), 1, len(paths)).mapInArrow(filtering, COUNTED).collect()
    record_lineage(layer, stage, params)
    return {"records_in": sum(map(_rows_of, paths)), QUARANTINED: 0} | _counts(rows, layer / "ledger")


def _filtered(
    paths: list[str], layer: Path
) -> Callable[[Iterable[pyarrow.RecordBatch]], Iterator[pyarrow.RecordBatch]]:
    """Filters the parts whose numbers come, and yields how many documents stay by source and language."""

    def filtered(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            for part in batch.column("id").to_pylist():
                counts = _filter_part(Path(paths[part]), layer)
                keys = list(counts)
                columns = {
                    "part": pa.array([part] * len(keys), pa.int32()),
                    "source": pa.array([source for source, _ in keys], pa.string()),
                    "language": pa.array([language for _, language in keys], pa.string()),
                    "count": pa.array([counts[key] for key in keys], pa.int64()),
                }
                yield pa.RecordBatch.from_pydict(columns)

    return filtered


def _filter_part(path: Path, layer: Path) -> Counter[tuple[str, str]]:
    """Write what stays of a part; returns how many documents those are by source and language."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    counts: Counter[tuple[str, str]] = Counter()
    with (
        pq.ParquetFile(path) as part,
        pq.ParquetWriter(layer / "documents" / path.name, part.schema_arrow, compression="zstd") as kept,
    ):
        for number in range(part.num_row_groups):
            rows = part.read_row_group(number)
            ids = rows.column("id")
            if len(ids):
                # The ledger is sorted by id, as parts mostly are: only what is in its range is read.
                bounds = pc.call_function("min_max", [ids])
                within = (pc.field("id") >= bounds["min"]) & (pc.field("id") <= bounds["max"])
                removed = pq.read_table(layer / "ledger", columns=["id"], filters=within).column("id")
                going = pc.call_function("is_in", [ids], pc.SetLookupOptions(removed.combine_chunks()))
                rows = rows.filter(pc.call_function("invert", [going]))
            if rows.num_rows:
                kept.write_table(rows, row_group_size=2**31 - 1)
            grouped = pa.table({name: rows.column(name) for name in ("source", "language")})
            for row in grouped.group_by(["source", "language"]).aggregate([([], "count_all")]).to_pylist():
                counts[row["source"], row["language"] or "und"] += row["count_all"]
    return counts


def _counts(rows: list[Any], ledger: Path) -> dict[str, Any]:
    import pyarrow.parquet as pq

    by_source, by_language, by_rule = Counter(), Counter(), Counter()
    for row in rows:
        by_source[row["source"]] += row["count"]
        by_language[row["language"]] += row["count"]
    for path in sorted(ledger.glob("*.parquet")):
        rules = pq.read_table(path, columns=["rule"]).group_by("rule").aggregate([([], "count_all")])
        by_rule.update({row["rule"]: row["count_all"] for row in rules.to_pylist()})
    return {
        KEPT: sum(by_source.values()),
        REMOVED: sum(by_rule.values()),
        "removed_by_rule": dict(sorted(by_rule.items())),
        "kept_by_source": dict(sorted(by_source.items())),
        "kept_by_language": dict(sorted(by_language.items())),
    }


def _rows_of(part: Path) -> int:
    import pyarrow.parquet as pq

    return pq.read_metadata(part).num_rows
