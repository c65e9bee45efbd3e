"""The document record, the ledger of decisions, and how a layer of both is written.

A layer is a directory: ``documents/part-00000.parquet …`` and ``ledger/part-00000.parquet …``. The same
documents give the same bytes, however many partitions or machines wrote them: parts are ranges of the order
key (a hash), their number follows from the amount of text, rows inside are sorted.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.stage import DocumentReport, StageParams

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame

DOCUMENT_COLUMNS = {
    "id": "string",
    "content": "string",
    "text": "string",
    "source": "string",
    "origin": "string",
    "kind": "string",
    "domain": "string",
    "language": "string",
    "language_score": "double",
    "signals": "map<string,double>",
    "license": "string",
    "collected_at": "string",
    "meta": "map<string,string>",
}
"""The columns of a document and their Spark types; docs/documents.md says what each means."""

FINDING = "struct<rule:string,value:double,threshold:double,detail:string>"
JUDGEMENT_COLUMNS = {"verdict": "string", "findings": f"array<{FINDING}>"}
"""What a stage adds to each document: what becomes of it, and every rule that spoke against it."""

KEPT, REMOVED, QUARANTINED = "kept", "removed", "quarantined"

DUPLICATE_RULES = ("exact_duplicate", "near_duplicate", "tfidf_duplicate", "semantic_duplicate")
"""Rules of the ledger whose detail is the id of the document that stays."""

TARGET_PART_BYTES = 256 * 2**20
"""Text in one Parquet part, before compression."""

ROW_GROUP_BYTES = 32 * 2**20
"""Text in one row group: what a reader holds at once."""


@dataclass(frozen=True)
class Finding:
    """One entry of the ledger: a rule, what was measured, and the bound it was held against."""

    rule: str
    value: float | None = None
    threshold: float | None = None
    detail: str | None = None


def schema(columns: dict[str, str]) -> str:
    """Columns as the DDL that Spark takes."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def arrow_schema() -> pyarrow.Schema:
    """The document and judgement columns as Arrow has them."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "double": pa.float64(),
        "map<string,double>": pa.map_(pa.string(), pa.float64()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }
    finding = pa.struct(
        [("rule", pa.string()), ("value", pa.float64()), ("threshold", pa.float64()), ("detail", pa.string())]
    )
    columns = DOCUMENT_COLUMNS | JUDGEMENT_COLUMNS
    return pa.schema([(name, types.get(kind, pa.list_(finding))) for name, kind in columns.items()])


def ledger_schema() -> pyarrow.Schema:
    """The columns of a ledger as Arrow has them."""
    import pyarrow as pa

    text, number = pa.string(), pa.float64()
    kinds = {"id": text, "stage": text, "rule": text, "value": number, "threshold": number}
    return pa.schema(list((kinds | {"verdict": text, "detail": text}).items()))


def record_id(source: str, origin: str, text: str | bytes) -> str:
    """128 bits over what a record is: the same in every run and on every machine."""
    body = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return _digest(source.encode(), origin.encode(), body)


def content_hash(text: str) -> str:
    """128 bits over the text without case, width and white space: equal for exact duplicates."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _digest(re.sub(r"\s+", " ", folded).strip().encode("utf-8", "surrogatepass"))


def unit_interval(*parts: str | int) -> float:
    """A number in [0, 1) that depends on the parts alone: the coin that sampling tosses."""
    return int(order_key(*parts)[:13], 16) / 16**13


def order_key(*parts: str | int) -> str:
    """A hexadecimal key that puts whatever it names in a fixed order without meaning: a shuffle."""
    return _digest(*(str(part).encode() for part in parts))


def write_layer(
    judged: DataFrame,
    layer: Path,
    stage: str,
    params: StageParams,
    *,
    extra: Iterable[str] = (),
    order: str = "id",
) -> dict[str, Any]:
    """Write judged documents as a layer and return the fields of its `DocumentReport`.

    ``judged`` has the document columns, those named in ``extra``, and the judgement columns; a row that is
    kept goes to the documents, every finding of every row to the ledger. ``order`` is a column of hexadecimal
    hashes by which documents are sorted. Nothing is collected but counts.
    """
    from pyspark.sql import functions as F

    spark = judged.sparkSession
    scratch = layer / ".scratch"  # inside the layer: a killed stage leaves it to be removed with the rest
    # The judgement may be costly (extraction, signals): it is computed once, then written twice.
    judged.write.mode("overwrite").parquet(str(scratch))
    rows = spark.read.schema(judged.schema).parquet(str(scratch))
    counts, text_bytes = _counts(rows)
    documents = rows.where(F.col("verdict") == KEPT).select(*DOCUMENT_COLUMNS, *extra)
    write_sorted(documents, layer / "documents", order, text_bytes)
    entries = rows.select("id", "verdict", F.explode("findings").alias("finding")).select(
        "id",
        F.lit(stage).alias("stage"),
        *(F.col("finding").getField(name).alias(name) for name in ("rule", "value", "threshold")),
        "verdict",
        F.col("finding").getField("detail").alias("detail"),
    )
    write_sorted(entries, layer / "ledger", "id", 0, then=["rule", "detail"])
    record_lineage(layer, stage, params)
    shutil.rmtree(scratch)
    return counts


def write_sorted(
    rows: DataFrame, directory: Path, key: str, text_bytes: int, then: Iterable[str] = ()
) -> None:
    """Write rows sorted by a hexadecimal key as ``part-00000.parquet …``, each part a range of the key.

    Workers write the parts themselves, by pyarrow, into a directory that all of them see: Java's writer puts
    the encodings in a file's footer in the order of a hash set, which differs from one process to the next.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import to_arrow_schema

    parts = max(1, -(-text_bytes // TARGET_PART_BYTES))
    columns = to_arrow_schema(rows.schema, timezone="UTC")
    directory.mkdir(parents=True)
    leading = F.conv(F.substring(key, 1, 8), 16, 10).cast("long")
    part: Column = F.floor(leading * parts / 2**32).cast("int")
    written = (
        rows.withColumn("part", part)
        .repartition(parts, "part")
        .sortWithinPartitions("part", key, *then)
        .mapInArrow(_part_writer(directory.absolute(), columns), "part int")
        .collect()
    )
    if not written:
        with _parquet_writer(directory / "part-00000.parquet", columns):
            pass
    for number, row in enumerate(sorted(written)):
        (directory / f".{row['part']}.parquet").rename(directory / f"part-{number:05d}.parquet")


def read_lineage(layer: Path) -> list[dict[str, Any]]:
    """The stages that made a layer, first to last, each with its parameters."""
    path = layer / "lineage.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else []


def carry_lineage(before: Path, layer: Path) -> None:
    """Begin a layer's lineage with that of the layer it is made from (call before `write_layer`)."""
    layer.mkdir(parents=True, exist_ok=True)
    (layer / "lineage.json").write_text(json.dumps(read_lineage(before)), "utf-8")


def record_lineage(layer: Path, stage: str, params: StageParams) -> None:
    """Add a stage to the lineage of the layer that it wrote."""
    lineage = [*read_lineage(layer), {"stage": stage, "parameters": params.model_dump(mode="json")}]
    (layer / "lineage.json").write_text(json.dumps(lineage, indent=1, sort_keys=True) + "\n", "utf-8")


def _part_writer(directory: Path, columns: pyarrow.Schema):
    """Writes the sorted rows of a partition, a file for each part, and yields the parts' numbers."""

    def written(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as pa

        pending: list[pa.RecordBatch] = []
        writer, current, size = None, None, 0
        for batch in batches:
            numbers = batch.column("part").to_pylist()
            sizes = _row_bytes(batch)
            batch, start = batch.select(columns.names).cast(columns), 0
            for row, number in enumerate(numbers):
                # Row groups end at rows, not where a batch happens to end: batches differ between clusters.
                if number != current or size >= ROW_GROUP_BYTES:
                    pending.append(batch.slice(start, row - start))
                    _write_row_group(writer, pending)
                    pending, start, size = [], row, 0
                if number != current:
                    if writer is not None:
                        writer.close()
                    current, writer = number, _parquet_writer(directory / f".{number}.parquet", columns)
                    yield pa.RecordBatch.from_pydict({"part": pa.array([number], pa.int32())})
                size += sizes[row]
            pending.append(batch.slice(start))
        _write_row_group(writer, pending)
        if writer is not None:
            writer.close()

    return written


def _row_bytes(batch: pyarrow.RecordBatch) -> list[int]:
    if "text" not in batch.schema.names:
        return [256] * batch.num_rows
    import pyarrow.compute as pc

    return [
        256 + (length or 0)
        for length in pc.call_function("binary_length", [batch.column("text")]).to_pylist()
    ]


def _write_row_group(writer: Any, batches: list[pyarrow.RecordBatch]) -> None:
    import pyarrow as pa

    if writer is not None and any(batch.num_rows for batch in batches):
        writer.write_table(pa.Table.from_batches(batches).combine_chunks(), row_group_size=2**31 - 1)


def _parquet_writer(path: Path, columns: pyarrow.Schema) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetWriter(path, columns, compression="zstd")


def _counts(rows: DataFrame) -> tuple[dict[str, Any], int]:
    """The counts of a `DocumentReport`, and the bytes of text that are kept, in one pass."""
    from pyspark.sql import functions as F

    first_rule = F.when(F.col("verdict") != KEPT, F.col("findings")[0].getField("rule"))
    # A document that is repeated is still one document.
    first_copy = F.col("copy") == 0 if "copy" in rows.columns else F.lit(True)
    groups = (
        rows.groupBy("verdict", "source", "language", first_rule.alias("rule"))
        .agg(F.sum(first_copy.cast("int")).alias("count"), F.sum(F.octet_length("text")).alias("bytes"))
        .collect()
    )
    text_bytes = sum(row["bytes"] for row in groups if row["verdict"] == KEPT)
    report: dict[str, Any] = {
        "records_in": 0, KEPT: 0, REMOVED: 0, QUARANTINED: 0,
        "removed_by_rule": {}, "kept_by_source": {}, "kept_by_language": {},
    }  # fmt: skip
    for verdict, source, language, rule, count, _ in sorted(groups, key=str):
        report["records_in"] += count
        report[verdict] += count
        if verdict == KEPT:
            _add(report["kept_by_source"], source, count)
            _add(report["kept_by_language"], language or "und", count)
        else:
            _add(report["removed_by_rule"], rule, count)
    return report, text_bytes


def _add(counts: dict[str, int], key: str, count: int) -> None:
    counts[key] = counts.get(key, 0) + count


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


__all__ = [
    "DOCUMENT_COLUMNS",
    "DUPLICATE_RULES",
    "JUDGEMENT_COLUMNS",
    "KEPT",
    "QUARANTINED",
    "REMOVED",
    "DocumentReport",
    "Finding",
    "arrow_schema",
    "carry_lineage",
    "content_hash",
    "ledger_schema",
    "order_key",
    "read_lineage",
    "record_id",
    "record_lineage",
    "schema",
    "unit_interval",
    "write_layer",
    "write_sorted",
]
