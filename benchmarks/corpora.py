"""The texts of a corpus, as benchmarks want them."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from tasks.corpus.extraction.normalise import normalise


def read_texts(corpus: Path) -> list[str]:
    """The normalised texts of every ``*.jsonl.gz`` with a field ``raw``, markup and all; none is empty."""
    files = sorted(corpus.glob("*.jsonl.gz"))
    if not files:
        sys.exit(f"{corpus} holds no *.jsonl.gz")
    texts = []
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            texts += [normalise(json.loads(line)["raw"]) for line in lines]
    return [text for text in texts if text]
