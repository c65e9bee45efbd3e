"""Sources in, one layer of raw documents out."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, field_validator

from tasks.corpus.readers import Quarantined, RawRecord, read_json_lines, read_whole_file
from tasks.records import (
    DOCUMENT_COLUMNS,
    JUDGEMENT_COLUMNS,
    KEPT,
    QUARANTINED,
    DocumentReport,
    arrow_schema,
    content_hash,
    record_id,
    schema,
    write_layer,
)
from tasks.resources import Resources
from tasks.spark import spark_session
from tasks.stage import Input, Output, StageError, StageParams, run_as_stage, stage

if TYPE_CHECKING:
    import pyarrow


class SourceParams(StageParams):
    """One source: where it lies, how it is read, and what is true of all its documents."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    path: str = Field(description="file or directory, relative to the corpus directory")
    format: Literal["jsonl", "files"] = Field(
        default="jsonl", description="one document a line, or one a file"
    )
    files: str = Field(
        default="*", description="which files of a directory, as a glob over their relative paths"
    )
    text_field: str = Field(default="text", description="the field of a JSON line that holds the document")
    keep_fields: dict[str, str] = Field(
        default={}, description="further fields kept in `meta`: theirs -> ours"
    )
    markup: Literal["plain", "html"] = Field(default="plain", description="how `clean` gets at the text")
    kind: Literal["web", "book", "code", "dialogue", "reference"]
    domain: str = "general"
    license: str = Field(min_length=1)
    collected_at: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="when it was collected, as a date")

    @field_validator("keep_fields")
    @classmethod
    def _markup_is_ours(cls, fields: dict[str, str]) -> dict[str, str]:
        if "markup" in fields.values():
            raise ValueError(
                "`markup` in `meta` says how `clean` gets at the text; keep the field by another name"
            )
        return fields


class CollectParams(StageParams):
    """Which sources are collected."""

    sources: list[SourceParams] = Field(min_length=1)
    max_record_bytes: int = Field(default=64 * 2**20, ge=1024, description="a longer record is quarantined")
    max_quarantined_share: float = Field(
        default=0.05, ge=0, le=1, description="of all records; above it the stage stops"
    )

    @field_validator("sources")
    @classmethod
    def _names_differ(cls, sources: list[SourceParams]) -> list[SourceParams]:
        names = [source.name for source in sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"every source needs a name of its own; used twice: {', '.join(twice)}")
        return sources


@stage
def collect(corpus: Input, raw: Output, params: CollectParams, resources: Resources) -> DocumentReport:
    """Read every source into one layer of documents; unreadable records are quarantined in the ledger.

    Raises:
        StageError: a source's path does not exist or matches no file, or too much of it cannot be read.
    """
    work = [(source, path) for source in params.sources for path in _files(corpus, source)]
    with spark_session("collect", resources) as spark:
        rows = (
            spark.createDataFrame([(i,) for i in range(len(work))], "work int")
            .repartition(max(1, min(len(work), spark.sparkContext.defaultParallelism * 4)))
            .mapInArrow(
                _reader(corpus, work, params.max_record_bytes), schema(DOCUMENT_COLUMNS | JUDGEMENT_COLUMNS)
            )
        )
        counts = write_layer(rows, raw, "collect", params)
        _check_quarantine(spark, raw, counts, params)
    return DocumentReport(**counts)


def _files(corpus: Path, source: SourceParams) -> list[Path]:
    place = corpus / source.path
    where = f"collect.sources: {source.name}"
    if not place.exists():
        raise StageError(f"{where}: {place} does not exist; `path` is relative to {corpus}")
    if place.is_file():
        return [place]
    found = sorted(
        path
        for path in place.rglob("*")
        if path.is_file() and fnmatch.fnmatch(path.relative_to(place).as_posix(), source.files)
    )
    if not found:
        raise StageError(f"{where}: no file in {place} matches `files: {source.files}`")
    return found


def _reader(corpus: Path, work: list[tuple[SourceParams, Path]], max_record_bytes: int):
    def read(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            for index in batch.column("work").to_pylist():
                source, path = work[index]
                yield from _batches(corpus, source, path, max_record_bytes)

    return read


def _batches(
    corpus: Path, source: SourceParams, path: Path, max_record_bytes: int
) -> Iterator[pyarrow.RecordBatch]:
    """The rows of one file, in batches bounded by their bytes."""
    import pyarrow as pa

    columns = arrow_schema()
    name = path.relative_to(corpus).as_posix()
    if source.format == "jsonl":
        records = read_json_lines(path, source.text_field, source.keep_fields, max_record_bytes)
    else:
        records = read_whole_file(path, max_record_bytes)
    rows: list[dict] = []
    size = 0
    for record in records:
        rows.append(_row(source, name, record))
        size += len(rows[-1]["text"])
        if size > 2**24 or len(rows) >= 1000:
            yield pa.RecordBatch.from_pylist(rows, columns)
            rows, size = [], 0
    if rows:
        yield pa.RecordBatch.from_pylist(rows, columns)


def _row(source: SourceParams, name: str, record: RawRecord | Quarantined) -> dict:
    origin = name if source.format == "files" else f"{name}:{record.position}"
    row = {
        "source": source.name,
        "origin": origin,
        "kind": source.kind,
        "domain": source.domain,
        "license": source.license,
        "collected_at": source.collected_at,
        "signals": {},
        "meta": {"markup": source.markup},
    }
    if isinstance(record, Quarantined):
        finding = {"rule": record.rule, "detail": record.detail}
        return row | {
            "id": record_id(source.name, origin, record.raw),
            "content": "",
            "text": "",
            "verdict": QUARANTINED,
            "findings": [finding],
        }
    if record.replaced_characters:
        row["signals"] = {"replaced_characters": float(record.replaced_characters)}
    row["meta"] |= record.fields
    return row | {
        "id": record_id(source.name, origin, record.text),
        "content": content_hash(record.text),
        "text": record.text,
        "verdict": KEPT,
        "findings": [],
    }


def _check_quarantine(spark, raw: Path, counts: dict, params: CollectParams) -> None:
    if not counts["quarantined"]:
        return
    ledger = spark.read.parquet(str(raw / "ledger")).where("verdict = 'quarantined'")
    examples = ledger.orderBy("id").limit(3).collect()
    share = counts["quarantined"] / counts["records_in"]
    if share > params.max_quarantined_share:
        shown = "; ".join(f"{row['rule']}: {row['detail']}" for row in examples)
        raise StageError(
            f"{counts['quarantined']} of {counts['records_in']} records cannot be read "
            f"(collect.max_quarantined_share is {params.max_quarantined_share}), for example {shown}"
        )


if __name__ == "__main__":
    run_as_stage(collect)
