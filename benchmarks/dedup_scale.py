"""Deduplication of a million documents: time per document and memory, against a tenth of them.

    python -m benchmarks.dedup_scale [--corpus sample/corpus] [--documents 1000000] [--cores 2]

Documents are made from real ones by real edits: four of five are put together from paragraphs of several,
every fifth is an earlier one, cut, pasted into, reordered or reformatted. A tenth of them is made from a
tenth of the real ones, so that documents have as many duplicates in both. Then a hundredth more is compared
with the index of all; then a tenth as many that share a bucket; then a chain of as many, each like the next,
contracted by one task and in rounds on Spark. Start of Java left out; Java has 2 GiB. Memory is the most that
all processes held together (proportional set size).
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.corpora import read_texts, write_documents
from benchmarks.edits import edited
from benchmarks.machine import describe_machine
from benchmarks.memory import watched_memory
from tasks.corpus.dedup import DedupParams, dedup
from tasks.corpus.deduplication.arrays import mapped_array, write_array
from tasks.corpus.deduplication.components import contract
from tasks.corpus.deduplication.stars import components_in_rounds
from tasks.distributed import run_tasks
from tasks.records import write_sorted
from tasks.resources import Resources, SparkResources
from tasks.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PART = 100_000
MEMORY_LIMIT = 8192
OPEN = {"max_cluster_share": 1.0, "max_source_loss": 1.0}


@dataclass
class Trials:
    """Runs what is measured, and holds what came out."""

    folder: Path
    spark: SparkSession
    resources: Resources
    nothing: Path = field(init=False)
    peak: float = 0.0

    def __post_init__(self) -> None:
        self.nothing = self.folder / "nothing"
        self.nothing.mkdir()

    def stage(
        self, name: str, texts: Iterable[str], earlier: Path | None = None, **params: float
    ) -> tuple[float, int]:
        """Seconds of the stage and how many documents it was given; its output is ``<name>-unique``."""
        unsorted, layer = self.folder / f"{name}-unsorted", self.folder / f"{name}-clean"
        remaining, parts, size, documents = iter(texts), 0, 0, 0
        while part := list(itertools.islice(remaining, PART)):
            write_documents(part, unsorted, parts)
            parts, size, documents = parts + 1, size + sum(map(len, part)), documents + len(part)
        found = self.spark.read.parquet(str(unsorted / "documents"))
        write_sorted(found, layer / "documents", "id", size)
        shutil.rmtree(unsorted)
        given = DedupParams.model_validate(params)

        def run() -> str:
            unique = self.folder / f"{name}-unique"
            report = dedup(layer, earlier or self.nothing, unique, given, self.resources)
            return f"{report.kept} kept, clusters up to {report.largest_cluster}"

        seconds = self.measured(f"{documents} documents{' more' if earlier else ''}", documents, run)
        return seconds, documents

    def measured(self, what: str, size: int, run: Callable[[], str]) -> float:
        """Seconds of a run; prints them, the time for each of ``size`` and the memory."""
        with watched_memory() as peaks:
            started = time.perf_counter()
            found = run()
            seconds = time.perf_counter() - started
        self.peak = max(self.peak, peaks["all"])
        each = f"{1e6 * seconds / size:7.1f} µs each"
        memory = f"{peaks['all']:7.0f} MiB, {peaks['unmapped']:.0f} without mapped files"
        print(f"{what}: {found:50s} {seconds:8.1f} s  {each}  {memory}", flush=True)
        return seconds


def main() -> None:
    """Run both sizes, the hundredth more, the bucket and the chain; print seconds and memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("sample/corpus"), help="a folder of *.jsonl.gz")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    print(describe_machine("pyspark", "numba", "pyarrow"), flush=True)
    texts, documents = read_texts(arguments.corpus), arguments.documents
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark_resources = SparkResources(master=f"local[{arguments.cores}]", driver_memory="2g")
        resources = Resources(work=folder / "work", spark=spark_resources)
        with spark_session("dedup_scale", resources) as spark:
            trials = Trials(folder, spark, resources)
            trials.stage("warm", list(made(texts, 2000)))
            tenth, _ = trials.stage("tenth", made(texts[::10], documents // 10))
            made_once = made(texts, documents + documents // 100)
            whole, _ = trials.stage("whole", itertools.islice(made_once, documents))
            more, _ = trials.stage("more", made_once, folder / "whole-unique")
            trials.stage("bucket", bucket(documents // 10), None, **OPEN)
            edges = chain(folder, documents)
            trials.measured(
                f"a chain of {documents}", documents,
                lambda: f"{run_tasks(spark, [edges], contracted)[0]} component, in one task",
            )  # fmt: skip
            trials.measured(f"a chain of {documents}", documents, lambda: _in_rounds(spark, edges, folder))
    slowdown, share = whole / documents / (tenth / (documents // 10)), more / whole
    result = {
        "benchmark": "dedup_scale", "documents": documents, "ours": round(1e6 * whole / documents, 1),
        "peer": round(1e6 * tenth / (documents // 10), 1), "ratio": round(slowdown, 2),
        "one_percent_more": round(share, 3), "peak_mib": round(trials.peak),
        "within_8_gib": trials.peak < MEMORY_LIMIT,
    }  # fmt: skip
    print(json.dumps(result))


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
        if number % 16 == 0:
            earlier.append(text)
        yield f"{text}\n\nEntry {number}, {rng.getrandbits(64):x}."


def bucket(count: int) -> Iterator[str]:
    """Documents that differ in their last words alone."""
    rng = random.Random(0)
    common = " ".join(f"word{rng.randrange(2000)}" for _ in range(150))
    return (f"{common} number {number}" for number in range(count))


def chain(folder: Path, count: int) -> Path:
    """A file of edges between neighbours whose numbers are in no order."""
    numbers = np.random.default_rng(0).permutation(count)
    write_array(folder / "chain.npy", np.stack([numbers[:-1], numbers[1:]], axis=1))
    return folder / "chain.npy"


def contracted(path: Path) -> int:
    """How many components the edges of a file have."""
    edges = mapped_array(path)
    return len(np.unique(contract([(edges[:, 0], edges[:, 1])])[1]))


def _in_rounds(spark: SparkSession, edges: Path, folder: Path) -> str:
    labels, rounds = components_in_rounds(spark, [edges], folder, 50)
    found = {int(root) for path in labels for root in np.unique(mapped_array(path)[:, 1])}
    return f"{len(found)} component, {rounds} rounds"


if __name__ == "__main__":
    main()
