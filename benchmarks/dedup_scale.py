"""Deduplication of a million documents: time per document and memory, against a tenth of them.

    python -m benchmarks.dedup_scale [--corpus sample/corpus] [--documents 1000000] [--cores 2]

Documents are made from real ones by real edits: four of five are put together from paragraphs of several,
every fifth is an earlier one, cut, pasted into, reordered or reformatted. Then a chain of as many documents,
each like the next, and a bucket of a tenth as many, at the same bounds. Start of Java left out; Java has
2 GiB. Memory is the most that all processes held together (proportional set size).
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.corpora import read_texts, write_documents
from benchmarks.edits import edited
from benchmarks.machine import describe_machine
from benchmarks.memory import watched_memory
from tasks.corpus.dedup import DedupParams, dedup
from tasks.corpus.deduplication.candidates import candidate_pairs
from tasks.corpus.deduplication.components import connected_components
from tasks.records import write_sorted
from tasks.resources import Resources, SparkResources
from tasks.spark import rows_in_a_batch, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART = 100_000


def main() -> None:
    """Run both sizes, the chain and the bucket; print seconds, microseconds a document and memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("sample/corpus"), help="a folder of *.jsonl.gz")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    print(describe_machine("pyspark", "numba", "pyarrow"), flush=True)
    texts = read_texts(arguments.corpus)
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark_resources = SparkResources(master=f"local[{arguments.cores}]", driver_memory="2g")
        resources = Resources(work=folder / "work", spark=spark_resources)
        with spark_session("dedup_scale", resources) as spark:
            _stage(folder, list(made(texts, 2000)), resources, "warm")
            per_document = []
            for documents in (arguments.documents // 10, arguments.documents):
                seconds, kept, peak = _stage(folder, made(texts, documents), resources, f"x{documents}")
                per_document.append(seconds / documents)
                lines.append(_line(f"{documents} documents, {kept} kept", documents, seconds, peak))
            for what, size in (("chain", arguments.documents), ("bucket", arguments.documents // 10)):
                with watched_memory() as peaks:
                    started = time.perf_counter()
                    found = (_chain if what == "chain" else _bucket)(spark, size, folder)
                    seconds = time.perf_counter() - started
                lines.append(_line(f"a {what} of {size}: {found}", size, seconds, peaks["all"]))
    print("\n".join(lines))
    ratio = per_document[1] / per_document[0]
    print(
        json.dumps(
            {"benchmark": "dedup_scale", "documents": arguments.documents, "slowdown": round(ratio, 2)}
        )
    )


def made(texts: list[str], count: int) -> Iterator[str]:
    """``count`` documents; the first ones are the same whatever their number."""
    rng = random.Random(0)
    paragraphs = [part for text in texts for part in text[:20_000].split("\n\n") if len(part) > 80]
    earlier: list[str] = []
    for number in range(count):
        if number % 5 == 4 and earlier:
            yield edited(rng.choice(earlier), number)
            continue
        text = "\n\n".join(rng.choice(paragraphs) for _ in range(rng.randint(1, 6)))
        if len(earlier) < 50_000:
            earlier.append(text)
        yield f"{text}\n\nEntry {number}, {rng.getrandbits(64):x}."


def _stage(folder: Path, texts: Iterable[str], resources: Resources, name: str) -> tuple[float, int, float]:
    unsorted, layer = folder / f"{name}-unsorted", folder / f"{name}-clean"
    remaining, written, size = iter(texts), 0, 0
    while part := list(itertools.islice(remaining, PART)):
        write_documents(part, unsorted, written)
        written, size = written + 1, size + sum(map(len, part))
    with spark_session("dedup_scale", resources) as spark:
        write_sorted(spark.read.parquet(str(unsorted / "documents")), layer / "documents", "id", size)
    with watched_memory() as peaks:
        started = time.perf_counter()
        report = dedup(layer, folder / f"{name}-unique", DedupParams(), resources)
        seconds = time.perf_counter() - started
    return seconds, report.kept, peaks["all"]


def _chain(spark: SparkSession, size: int, folder: Path) -> str:
    """Neighbours in a chain, whose ids are in no order."""
    edges = spark.range(size - 1).select(place_of("id").alias("left"), place_of("id + 1").alias("right"))
    labels, rounds = connected_components(edges, folder / "chain", 50)
    return f"{labels.select('component').distinct().count()} component, {rounds} rounds"


def _bucket(spark: SparkSession, size: int, folder: Path) -> str:
    banded = spark.range(size).select(
        place_of("id").alias("id"), F.lit(-1).alias("rank"), F.array(F.lit(7).cast("bigint")).alias("keys")
    )
    with rows_in_a_batch(spark, 65_536):
        return f"{candidate_pairs(banded, size, 1, 16).count()} pairs"


def place_of(expression: str):
    """An id of 16 bytes for a number."""
    return F.unhex(F.md5(F.expr(expression).cast("string")))


def _line(what: str, size: int, seconds: float, peak: float) -> str:
    return f"{what:48s} {seconds:8.1f} s  {1e6 * seconds / size:7.1f} µs each  {peak:7.0f} MiB"


if __name__ == "__main__":
    main()
