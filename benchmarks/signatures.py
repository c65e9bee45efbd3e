"""MinHash signatures of a corpus's shingles: ours against datasketch's class, in one process on one core.

python -m benchmarks.signatures [--corpus data/clean]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from benchmarks.machine import describe_machine
from tasks.corpus.minhash import SCHEME, shingles, signature

PERMUTATIONS, SEED, SHINGLE_WORDS = 112, 1, 5
ROUNDS = 3


def main() -> None:
    """Time both, three times in turns, and print the best of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("data/clean"), help="a layer of documents")
    arguments = parser.parse_args()
    if not (arguments.corpus / "documents").is_dir():
        sys.exit(f"{arguments.corpus} is no layer of documents; `gristmill run corpus` makes data/clean")
    texts = pq.read_table(arguments.corpus / "documents", columns=["text"]).column("text").to_pylist()
    documents = [items for items in (shingles(text, SHINGLE_WORDS) for text in texts) if items]
    total = sum(map(len, documents))
    print(describe_machine("numpy", "datasketch"))
    print(f"corpus    {len(documents)} documents, {total} shingles, {PERMUTATIONS} permutations\n")
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(_timed(lambda: [signature(items, PERMUTATIONS, SEED) for items in documents]))
        theirs.append(_timed(lambda: _datasketch(documents)))
    equal = all((a == b).all() for a, b in zip(ours[0][1], theirs[0][1], strict=True))
    best, peer = min(seconds for seconds, _ in ours), min(seconds for seconds, _ in theirs)
    print("                seconds  shingles/s  ratio")
    print(f"gristmill       {best:7.2f}  {total / best:10.0f}  {peer / best:5.2f}")
    print(f"datasketch      {peer:7.2f}  {total / peer:10.0f}   1.00")
    print(f"equal bit for bit: {equal}")
    if not equal:
        sys.exit(1)


def _timed(function) -> tuple[float, list[np.ndarray]]:
    started = time.perf_counter()
    made = function()
    return time.perf_counter() - started, made


def _datasketch(documents: list[set[str]]) -> list[np.ndarray]:
    from datasketch import MinHash

    permutations = MinHash(PERMUTATIONS, SEED, scheme=SCHEME).permutations
    made = []
    for items in documents:
        sketch = MinHash(PERMUTATIONS, SEED, scheme=SCHEME, permutations=permutations)
        sketch.update_batch([item.encode("utf-8", "surrogatepass") for item in items])
        made.append(np.asarray(sketch.hashvalues))
    return made


if __name__ == "__main__":
    main()
