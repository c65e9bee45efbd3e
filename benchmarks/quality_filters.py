"""The four FineWeb filter groups: ours against datatrove's, documents a second on one core.

    python -m benchmarks.quality_filters [--corpus sample/corpus] [--documents N]

Both get the same texts in memory and decide on each; datatrove segments with spaCy, as it does by default,
in an environment of its own. Times are of the processor. The share of equal verdicts is with each one's own
segments; tests/corpus/scoring/test_golden_quality.py compares rule by rule with the same ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.corpora import read_texts
from benchmarks.golden_quality import DATATROVE
from benchmarks.machine import describe_machine
from benchmarks.peer_environment import peer_python
from tasks.corpus.policies.decide import decide
from tasks.corpus.policies.presets import PRESETS
from tasks.corpus.scoring.measure import SIGNALS, measure

BATCH, ROUNDS = 256, 3


def main() -> None:
    """Run both and print documents a second, the ratio, and how often the verdicts are equal."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("sample/corpus"), help="a folder of *.jsonl.gz")
    parser.add_argument("--documents", type=int, help="only so many, spread over the corpus")
    arguments = parser.parse_args()
    texts = read_texts(arguments.corpus)
    if arguments.documents and arguments.documents < len(texts):
        texts = [texts[int(i)] for i in np.linspace(0, len(texts) - 1, arguments.documents)]
    print(describe_machine("numba", "numpy", "pyarrow"))
    print(f"corpus    {len(texts)} documents, {sum(map(len, texts)) / 1e6:.1f} M characters\n")
    _passing(texts[:1])  # compiles
    rounds = [_timed(texts) for _ in range(ROUNDS)]
    seconds, passing = min(rounds, key=lambda run: run[0])
    peer = _datatrove(texts)
    equal = np.mean(np.array(passing) == np.array(peer["passing"]))
    ours, theirs = len(texts) / seconds, len(texts) / peer["cpu_seconds"]
    print("                    CPU seconds  documents/s   kept")
    print(f"gristmill           {seconds:11.2f}  {ours:11.0f}  {sum(passing):5d}")
    print(f"datatrove 0.10.1    {peer['cpu_seconds']:11.2f}  {theirs:11.0f}  {sum(peer['passing']):5d}")
    print(f"equal verdicts, each with its own segmentation: {equal:.2%}")
    result = {"benchmark": "quality_filters", "ours": round(ours, 1), "peer": round(theirs, 1)}
    print(json.dumps(result | {"ratio": round(ours / theirs, 2)}))


def _timed(texts: list[str]) -> tuple[float, list[bool]]:
    started = time.process_time()
    passing = _passing(texts)
    return time.process_time() - started, passing


def _passing(texts: list[str]) -> list[bool]:
    rules = [rule for rule in PRESETS["fineweb_code"].rules if rule.signal in SIGNALS]
    passing: list[bool] = []
    for start in range(0, len(texts), BATCH):
        batch = pa.array(texts[start : start + BATCH])
        signals_DS = measure(batch, ["en"] * len(batch))
        decisions = decide(rules, signals_DS, SIGNALS, [("all", "web", "en")] * len(batch))
        passing += [not failed.any() for failed in decisions.failed_DR]
    return passing


def _datatrove(texts: list[str]) -> dict:
    script = Path(__file__).parent / "peers" / "datatrove_filters.py"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
        command = [str(peer_python("datatrove", DATATROVE)), str(script), "time", str(path)]
        said = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, stderr=sys.stderr, text=True
        ).stdout
    return json.loads(said.splitlines()[-1])


if __name__ == "__main__":
    main()
