"""Near-duplicates: the whole Spark job and the signatures alone, against rensa and datatrove; and the truth.

    python -m benchmarks.deduplication [--corpus sample/corpus] [--copies 1] [--cores 2] [--without-datatrove]

Documents a second and core, start of Java left out: ours is wall time times cores, the peers' is the time of
the processor; the best of five runs, of datatrove one. rensa shingles, signs, queries and unites in one
process and verifies nothing; datatrove runs its four stages with one worker; each peer has an environment of
its own. With ``--copies`` the corpus is there several times over, each copy with edits. What is found is held
against all pairs of Jaccard 0.8 and above, found exactly by prefix filtering (Chaudhuri, Ganti and Kaushik,
ICDE 2006).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.corpora import read_texts, write_documents
from benchmarks.edits import edited
from benchmarks.machine import describe_machine
from benchmarks.peer_environment import peer_python
from tasks.corpus.dedup import DedupParams, DedupReport, dedup
from tasks.corpus.deduplication.minhash import band_keys, signatures
from tasks.corpus.deduplication.shingles import shingle
from tasks.corpus.scoring.segments import segment_words
from tasks.resources import Resources, SparkResources
from tasks.spark import spark_session

RENSA = ("rensa==0.5.0",)
DATATROVE = ("datatrove[io,processing]==0.10.1", "spacy==3.8.18")
PEERS = Path(__file__).parent / "peers"
PARAMS = DedupParams()
ROUNDS = 5


def main() -> None:
    """Run all, print the table, how right ours is, and the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("sample/corpus"), help="a folder of *.jsonl.gz")
    parser.add_argument("--copies", type=int, default=1, help="how many times the corpus is there, edited")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--without-datatrove", action="store_true", help="which takes longest")
    arguments = parser.parse_args()
    texts = read_texts(arguments.corpus)
    texts += [edited(text, copy) for copy in range(1, arguments.copies) for text in texts]
    print(describe_machine("pyspark", "numba", "pyarrow"))
    print(f"corpus    {len(texts)} documents, {sum(map(len, texts)) / 1e6:.1f} M characters\n")
    rates: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ids = write_documents(texts, folder / "clean")
        _write_lines(ids, texts, folder / "lines")
        wall, report = _stage(folder, arguments.cores)
        rates["gristmill, the stage"] = len(texts) / (wall * arguments.cores)
        rates["gristmill, signatures"] = len(texts) / _signatures(texts)
        rates["rensa 0.5.0"] = len(texts) / _peer("rensa", RENSA, folder)
        if not arguments.without_datatrove:
            rates["datatrove 0.10.1"] = len(texts) / _peer("datatrove", DATATROVE, folder)
        right = _held_against_truth(ids, texts, folder / "unique") if arguments.copies == 1 else {}
    print(f"                         documents/s and core      ({wall:.1f} s on {arguments.cores} cores)")
    for name, rate in rates.items():
        print(f"{name:24s} {rate:20.0f}")
    print(f"\nkept {report.kept}, exact {report.exact_duplicates}, near {report.near_duplicates}; {right}")
    ours, peer = rates["gristmill, the stage"], rates["rensa 0.5.0"]
    result = {"benchmark": "deduplication", "ours": round(ours), "peer": round(peer)} | right
    result["signatures_ratio"] = round(rates["gristmill, signatures"] / peer, 2)
    if "datatrove 0.10.1" in rates:
        result["datatrove_ratio"] = round(ours / rates["datatrove 0.10.1"], 1)
    print(json.dumps(result | {"ratio": round(ours / peer, 2)}))


def _stage(folder: Path, cores: int) -> tuple[float, DedupReport]:
    """The best wall time of five of the whole stage, from the layer to the layer."""
    spark = SparkResources(master=f"local[{cores}]", driver_memory="2g")
    resources = Resources(work=folder / "work", spark=spark)
    runs, nothing = [], folder / "nothing"
    nothing.mkdir()
    with spark_session("deduplication", resources):
        for number in range(ROUNDS):
            started = time.perf_counter()
            out = folder / ("unique" if number == 0 else f"unique-{number}")
            report = dedup(folder / "clean", nothing, out, PARAMS, resources)
            runs.append((time.perf_counter() - started, report))
            print(f"round {number + 1}: {runs[-1][0]:.1f} s")
    return min(runs, key=lambda run: run[0])


def _signatures(texts: list[str]) -> float:
    """The best processor time of five from texts to band keys, on one core."""
    batches = [pa.array(texts[start : start + 1000]) for start in range(0, len(texts), 1000)]
    runs = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for batch in batches:
            shingles = shingle(segment_words(batch, places=False), PARAMS.shingle_words)
            band_keys(signatures(shingles, PARAMS.bands * PARAMS.rows, PARAMS.seed), PARAMS.bands)
        runs.append(time.process_time() - started)
    return min(runs)


def _peer(name: str, requirements: tuple[str, ...], folder: Path) -> float:
    given = [folder / "lines" / "documents.jsonl"] if name == "rensa" else [folder / "lines", folder / name]
    numbers = [PARAMS.shingle_words, PARAMS.bands, PARAMS.rows]
    command = [peer_python(name, requirements), PEERS / f"{name}_dedup.py", *given, *numbers]
    seconds = []
    # datatrove takes minutes, and its folders once.
    for _ in range(ROUNDS if name == "rensa" else 1):
        printed = subprocess.run(
            [str(part) for part in command], check=True, capture_output=True, text=True
        ).stdout
        seconds.append(json.loads(printed.splitlines()[-1])["seconds"])
    return min(seconds)


def _write_lines(ids: list[str], texts: list[str], folder: Path) -> None:
    folder.mkdir()
    with (folder / "documents.jsonl").open("w", encoding="utf-8") as lines:
        for name, text in zip(ids, texts, strict=True):
            lines.write(json.dumps({"id": name, "text": text}) + "\n")


def _held_against_truth(ids: list[str], texts: list[str], unique: Path) -> dict[str, float]:
    """Precision: removed documents that a chain of true pairs joins to the one kept for them. Recall: true
    pairs of which both are known to be in one group."""
    pairs = true_pairs(texts, PARAMS.shingle_words, PARAMS.min_similarity)
    group = {name: name for name in ids}
    ledger = pq.read_table(unique / "ledger").to_pylist()
    group |= {row["id"]: row["detail"] for row in ledger}
    found = sum(group[ids[one]] == group[ids[other]] for one, other in pairs)
    parents = list(range(len(ids)))

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for one, other in pairs:
        parents[root(one)] = root(other)
    numbers = {name: number for number, name in enumerate(ids)}
    near = [row for row in ledger if row["rule"] == "near_duplicate"]
    right = sum(root(numbers[row["id"]]) == root(numbers[row["detail"]]) for row in near)
    return {
        "precision": round(right / max(1, len(near)), 4),
        "recall": round(found / max(1, len(pairs)), 4),
        "true_pairs": len(pairs),
    }


def true_pairs(texts: list[str], size: int, threshold: float) -> list[tuple[int, int]]:
    """All pairs of different texts whose sets of shingles have a Jaccard similarity of the threshold.

    Two such sets share one of their ``n - ceil(threshold n) + 1`` rarest shingles.
    """
    found_in = shingle(segment_words(pa.array(texts)), size)
    hashes, places, counts = np.unique(found_in.hashes_S, return_inverse=True, return_counts=True)
    rarity = np.lexsort((hashes, counts))
    order = np.empty(len(hashes), np.int64)
    order[rarity] = np.arange(len(hashes))
    ranked = order[places]
    holders: dict[int, list[int]] = defaultdict(list)
    members: list[set[int]] = []
    found = []
    bounds = found_in.offsets_D1
    for number in range(len(texts)):
        mine = np.unique(ranked[bounds[number] : bounds[number + 1]]).tolist()
        members.append(set(mine))
        others: set[int] = set()
        for rank in mine[: len(mine) - int(np.ceil(threshold * len(mine) - 1e-9)) + 1]:
            others.update(holders[rank])
            holders[rank].append(number)
        for other in others:
            common = len(members[number] & members[other])
            if common / (len(members[number]) + len(members[other]) - common) >= threshold:
                found.append((other, number))
    return found


if __name__ == "__main__":
    main()
