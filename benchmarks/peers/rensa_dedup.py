# pyright: reportMissingImports=false
"""rensa, end to end in one process: shingles, signatures, LSH, union-find. Prints seconds and what it keeps.

    python rensa_dedup.py DOCUMENTS.jsonl SHINGLE_WORDS BANDS ROWS

Runs in an environment of rensa's own.
"""

import json
import re
import sys
import time
from pathlib import Path

from rensa import RMinHash, RMinHashLSH

WORD = re.compile(r"\w+")


def main() -> None:
    """Deduplicate the documents of a file."""
    path, size, bands, rows = sys.argv[1], *map(int, sys.argv[2:])
    with Path(path).open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    started = time.process_time()
    sets = [shingles(document["text"], size) for document in documents]
    signatures = RMinHash.from_token_sets(sets, num_perm=bands * rows, seed=42)
    index = RMinHashLSH(threshold=0.72, num_perm=bands * rows, num_bands=bands)
    index.insert_pairs(enumerate(signatures))
    parents = list(range(len(documents)))

    def root(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for number, alike in enumerate(index.query_all(signatures)):
        for other in alike:
            one, two = root(number), root(other)
            parents[max(one, two)] = min(one, two)
    kept = [document["id"] for number, document in enumerate(documents) if root(number) == number]
    print(json.dumps({"seconds": time.process_time() - started, "kept": len(kept)}))


def shingles(text: str, size: int) -> list[str]:
    """Its runs of words."""
    words = WORD.findall(text.lower())
    return [" ".join(words[i : i + size]) for i in range(max(1, len(words) - size + 1))]


if __name__ == "__main__":
    main()
