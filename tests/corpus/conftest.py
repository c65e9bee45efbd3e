"""A Spark session for the whole run, and layers made of a few documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.corpus.collect import CollectParams, SourceParams, collect
from tasks.records import DOCUMENT_COLUMNS, content_hash, record_id
from tasks.resources import Resources, SparkResources
from tasks.spark import spark_session

Rows = Callable[[Path], list[dict[str, Any]]]


@pytest.fixture(scope="session")
def resources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Resources]:
    """Small Spark resources, with a session that every stage of the run shares."""
    spark = SparkResources(
        master="local[1]",
        partitions=2,
        driver_memory="1g",
        # Plans of a few rows cost more to compile than to interpret.
        config={"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
        java_options="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    small = Resources(work=tmp_path_factory.mktemp("work"), spark=spark)
    with spark_session("tests", small):
        yield small


@pytest.fixture
def source() -> Callable[..., SourceParams]:
    """A source with everything filled in but what a test says."""

    def make(**given: Any) -> SourceParams:
        usual = {
            "name": "docs",
            "path": "docs.jsonl",
            "kind": "book",
            "license": "CC0",
            "collected_at": "2026-01-01",
        }
        return SourceParams.model_validate(usual | given)

    return make


@pytest.fixture
def collected(
    tmp_path: Path, resources: Resources, source: Callable[..., SourceParams]
) -> Callable[..., Path]:
    """Collect texts as one JSON Lines source and return the raw layer."""

    def run(*texts: Any, **given: Any) -> Path:
        corpus = tmp_path / "corpus"
        corpus.mkdir(exist_ok=True)
        lines = [json.dumps({"text": text}) + "\n" for text in texts]
        (corpus / "docs.jsonl").write_text("".join(lines), "utf-8")
        (tmp_path / "watermarks.json").write_text("{}")
        params = CollectParams(sources=[source(**given)])
        collect(corpus, tmp_path / "watermarks.json", tmp_path / "raw", params, resources)
        return tmp_path / "raw"

    return run


@pytest.fixture
def layer(tmp_path: Path) -> Callable[..., Path]:
    """Write documents, each given as text or as columns, as a layer of clean ones."""

    def write(*documents: str | dict[str, Any], name: str = "clean", parts: int = 1) -> Path:
        rows = []
        for number, document in enumerate(documents):
            columns = {"text": document} if isinstance(document, str) else document
            row = {
                "source": "docs",
                "origin": f"docs.jsonl:{number + 1}",
                "kind": "book",
                "domain": "general",
                "language": "en",
                "language_score": 1.0,
                "signals": {},
                "license": "CC0",
                "collected_at": "2026-01-01",
                "meta": {},
            } | columns
            row["id"] = record_id(row["source"], row["origin"], row["text"])
            row["content"] = content_hash(row["text"])
            rows.append({column: row[column] for column in DOCUMENT_COLUMNS})
        types = {
            "double": pa.float64(),
            "string": pa.string(),
            "map<string,double>": pa.map_(pa.string(), pa.float64()),
            "map<string,string>": pa.map_(pa.string(), pa.string()),
        }
        schema = pa.schema([(column, types[kind]) for column, kind in DOCUMENT_COLUMNS.items()])
        directory = tmp_path / name / "documents"
        directory.mkdir(parents=True)
        for part in range(parts):
            table = pa.Table.from_pylist(rows[part::parts], schema)
            pq.write_table(table, directory / f"part-{part:05d}.parquet")
        return tmp_path / name

    return write


@pytest.fixture
def documents_of() -> Rows:
    """Reads the documents of a layer."""
    return lambda layer: pq.read_table(layer / "documents").to_pylist(maps_as_pydicts="strict")


@pytest.fixture
def ledger_of() -> Rows:
    """Reads the ledger of a layer."""
    return lambda layer: pq.read_table(layer / "ledger").to_pylist()
