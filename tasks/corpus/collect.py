"""Sources in, one layer of raw documents out."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from pydantic import Field, field_validator

from tasks.corpus.found_files import FoundFile, NoFile
from tasks.corpus.locations import Location
from tasks.corpus.reading.reading import read
from tasks.corpus.reading.records import Quarantined, RawRecord, Span
from tasks.corpus.sources import DEFAULT_MAX_RECORD_BYTES, SourceParams
from tasks.corpus.spreading import PIECE_COLUMNS, Piece, decoded, piece_of_fault, pieces_of, spread
from tasks.corpus.store_errors import Interrupted, Unreadable
from tasks.corpus.survey import Surveyed, survey
from tasks.corpus.watched_reader import WatchedReader
from tasks.corpus.watermarks import Mark, read_watermarks, write_watermarks
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
    from pyspark.sql import SparkSession

log = logging.getLogger("gristmill")

READ_BYTES = 2**18

IN_FILE = re.compile(r"\d+(\+\d+)?")
"""A position in a file itself; any other is one in a member of an archive."""

BATCH_BYTES = 2**24
BATCH_ROWS = 1000


class CollectParams(StageParams):
    """Which sources are collected."""

    sources: list[SourceParams] = Field(min_length=1)
    max_record_bytes: int = Field(
        default=DEFAULT_MAX_RECORD_BYTES, ge=1024, description="a longer record is quarantined"
    )
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


class CollectReport(DocumentReport):
    """What was read of each source; ``bytes_read`` counts bytes as they lie there, compressed or not."""

    files_read: dict[str, int]
    files_skipped: dict[str, int]
    bytes_read: dict[str, int]


@stage
def collect(
    corpus: Input, watermarks: Input, raw: Output, params: CollectParams, resources: Resources
) -> CollectReport:
    """Read what is new of every source into one layer; unreadable records are quarantined in the ledger.

    ``watermarks`` says what has been collected before; ``raw`` gets a ``watermarks.json`` that says so after
    this run.

    Raises:
        StageError: a source's path does not exist, cannot be listed or matches no file, or too much of what
            there is cannot be read.
        ConnectionError: a store stopped answering.
    """
    corpus = corpus.absolute()  # executors work in directories of their own
    marks = read_watermarks(watermarks)
    found: list[tuple[int, FoundFile]] = []
    faults: list[tuple[int, NoFile]] = []
    for number, source in enumerate(params.sources):
        for item in _listed(source, corpus):
            (faults if isinstance(item, NoFile) else found).append((number, item))  # pyright: ignore[reportArgumentType]
    with spark_session("collect", resources) as spark, _interruptions_told():
        known = [marks.get(source.name, {}) for source in params.sources]
        surveyed: list[Surveyed] = []
        for item in survey(spark, params.sources, corpus, found, known):
            if isinstance(item, Surveyed):
                surveyed.append(item)
            else:
                faults.append(item)
        counts = _write(spark, corpus, raw, params, surveyed, faults)
        skipped = sum(item.start is None for item in surveyed)
        unreadable = _check_quarantine(spark, raw, counts, skipped, params)
    for item in surveyed:
        source = params.sources[item.source].name
        new = item.start is not None and record_id(source, item.file.name, b"") not in unreadable
        if new and item.file.identity is not None:
            mark = Mark(size=item.file.size, identity=item.file.identity)
            marks.setdefault(source, {})[item.file.name] = mark
    write_watermarks(raw / "watermarks.json", marks)
    report = CollectReport.model_validate(counts | _totals(params.sources, surveyed))
    if not report.records_in:
        log.info("collect: nothing is new since %s", watermarks)
    return report


def _listed(source: SourceParams, corpus: Path) -> Iterator[FoundFile | NoFile]:
    where = f"collect.sources: {source.name}"
    location = source.location(corpus)
    empty = True
    try:
        for item in location.find(source.files):
            empty = False
            yield item
    except StageError as error:
        hint = f"; `path` is relative to {corpus}" if location.prefix else ""
        raise StageError(f"{where}: {error}{hint}") from None
    if empty:
        pattern = f"`path: {source.path}`" if location.pattern else f"`files: {source.files}`"
        raise StageError(f"{where}: no file in {location.url} matches {pattern} (hidden files do not count)")


def _write(
    spark: SparkSession,
    corpus: Path,
    raw: Path,
    params: CollectParams,
    surveyed: list[Surveyed],
    faults: list[tuple[int, NoFile]],
) -> dict[str, Any]:
    """Read what is new into a layer, on the executors; returns its counts."""
    pieces = [piece_of_fault(source, fault) for source, fault in faults]
    of_source: list[list[Surveyed]] = [[] for _ in params.sources]
    for item in surveyed:
        of_source[item.source].append(item)
    for source, mine in zip(params.sources, of_source, strict=True):
        new = [item for item in mine if item.start is not None]
        cut = [piece for item in new for piece in _pieces(item)]
        log.info(
            "collect: %s: %d of %d files are new, %.1f MB in %d pieces",
            source.name, len(new), len(mine), sum(item.bytes_to_read for item in new) / 1e6, len(cut),
        )  # fmt: skip
        pieces += cut
    rows = [{column: getattr(piece, column) for column in PIECE_COLUMNS} for piece in pieces]
    spreading = spread(spark, rows, PIECE_COLUMNS, [piece.weight for piece in pieces])
    judged = spreading.mapInArrow(_reader(corpus, params), schema(DOCUMENT_COLUMNS | JUDGEMENT_COLUMNS))
    return write_layer(judged, raw, "collect", params)


def _pieces(item: Surveyed) -> Iterator[Piece]:
    return pieces_of(item.source, item.file, item.kind, start=item.start or 0, groups=item.groups)


def _totals(sources: list[SourceParams], surveyed: list[Surveyed]) -> dict[str, dict[str, int]]:
    names = [source.name for source in sources]
    totals = {key: dict.fromkeys(names, 0) for key in ("files_read", "files_skipped", "bytes_read")}
    for item in surveyed:
        name = names[item.source]
        totals["files_skipped" if item.start is None else "files_read"][name] += 1
        totals["bytes_read"][name] += item.bytes_to_read
    return totals


def _reader(corpus: Path, params: CollectParams):
    sources = params.sources

    def reading(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        locations = [source.location(corpus) for source in sources]
        for batch in batches:
            for columns in batch.to_pylist():
                piece = Piece(**columns)
                source = sources[piece.source]
                records = _records(source, locations[piece.source], piece, params.max_record_bytes)
                yield from _batches(_row(source, piece.name, record) for record in records)

    return reading


def _records(
    source: SourceParams, location: Location, piece: Piece, max_record_bytes: int
) -> Iterator[RawRecord | Quarantined]:
    """The records of a piece; a file that cannot be read, or not to its end, is one that is quarantined."""
    if piece.rule is not None:
        yield Quarantined("", piece.rule, piece.detail or "")
        return
    file = FoundFile(decoded(piece.path), piece.name, None)
    span = None if piece.start is None or piece.stop is None else Span(piece.start, piece.stop)
    try:
        with closing(WatchedReader(location.open(file))) as watched:
            opened = cast(BinaryIO, io.BufferedReader(watched, READ_BYTES))
            try:
                yield from read(opened, piece.name, source.reading(max_record_bytes), span)
            except Exception as error:
                raise location.failure(file, watched.error) if watched.error else error from None
            if watched.error is not None:
                raise location.failure(file, watched.error)
    except Unreadable as error:
        yield Quarantined("", "unreadable", str(error))


def _batches(rows: Iterable[dict]) -> Iterator[pyarrow.RecordBatch]:
    """Rows in batches bounded by their bytes."""
    import pyarrow as pa

    columns = arrow_schema()
    batch: list[dict] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row["text"])
        if size > BATCH_BYTES or len(batch) >= BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(batch, columns)
            batch, size = [], 0
    if batch:
        yield pa.RecordBatch.from_pylist(batch, columns)


def _row(source: SourceParams, name: str, record: RawRecord | Quarantined) -> dict:
    origin = _origin(name, record)
    row = {
        "source": source.name,
        "origin": origin,
        "kind": source.kind,
        "domain": source.domain,
        "license": source.license,
        "collected_at": source.collected_at,
        "signals": {},
        "meta": {},
    }
    if isinstance(record, Quarantined):
        finding = {"rule": record.rule, "detail": f"{name}: {record.detail}"}
        return row | {
            "id": record_id(source.name, origin, record.raw),
            "content": "",
            "text": "",
            "verdict": QUARANTINED,
            "findings": [finding],
        }
    if record.replaced_characters:
        row["signals"] = {"replaced_characters": float(record.replaced_characters)}
    markup = (record.markup or "plain") if source.markup == "auto" else source.markup
    row["meta"] = {**record.fields, "markup": markup}
    if record.identity is not None:
        row["meta"]["source_id"] = record.identity
    return row | {
        "id": record_id(source.name, origin, record.text),
        "content": content_hash(record.text),
        "text": record.text,
        "verdict": KEPT,
        "findings": [],
    }


def _origin(name: str, record: RawRecord | Quarantined) -> str:
    """A file's name, the member of an archive, and the place in it unless the whole is one document."""
    position = record.position
    if not position or (position == "0" and isinstance(record, RawRecord) and record.markup is not None):
        return name
    return f"{name}:{position}" if IN_FILE.fullmatch(position) else f"{name}!{position}"


def _check_quarantine(
    spark: SparkSession, raw: Path, counts: dict[str, Any], skipped: int, params: CollectParams
) -> set[str]:
    """The ids of files that could not be read.

    What is no file at all is no record that was lost, and a file that was skipped is one that could be read:
    what lies there for good must not stop a run in which little is new.

    Raises:
        StageError: too much was quarantined.
    """
    if not counts["quarantined"]:
        return set()
    ledger = spark.read.parquet(str(raw / "ledger")).where("verdict = 'quarantined'")
    lost = counts["quarantined"] - counts["removed_by_rule"].get("not_a_file", 0)
    share = lost / max(1, counts["records_in"] + skipped)
    if share > params.max_quarantined_share:
        examples = ledger.where("rule <> 'not_a_file'").orderBy("id").limit(3).collect()
        shown = "; ".join(f"{row['rule']}: {row['detail']}" for row in examples)
        raise StageError(
            f"{lost} of {counts['records_in']} records cannot be read "
            f"(collect.max_quarantined_share is {params.max_quarantined_share}), for example {shown}"
        )
    return {row["id"] for row in ledger.where("rule = 'unreadable'").select("id").collect()}


@contextmanager
def _interruptions_told() -> Iterator[None]:
    """An interruption on an executor comes wrapped in an error of Spark's: told as what it is."""
    try:
        yield
    except StageError:
        raise
    except Exception as error:
        found = re.search(rf"{Interrupted.__name__}: (.+)", str(error))
        if found is None:
            raise
        raise Interrupted(f"{found[1]}; what was collected so far is dropped, run again") from None


if __name__ == "__main__":
    run_as_stage(collect)
