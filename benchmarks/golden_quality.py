"""Write tests/corpus/scoring/golden/: texts, and what datatrove and TFDS say of them with our segmentation.

python -m benchmarks.golden_quality

Real texts are from the sample corpus (public domain, PSF licence); the others are made to stand at the
edges of the rules.
"""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import tempfile
from pathlib import Path

from benchmarks.peer_environment import peer_python
from tasks.corpus.extraction.normalise import normalise
from tasks.corpus.scoring.characters import TERMINAL, character_flags

GOLDEN = Path("tests/corpus/scoring/golden/quality.jsonl.gz")
PEERS = Path(__file__).parent / "peers"
DATATROVE = ("datatrove[processing]==0.10.1", "spacy==3.8.18")
TFDS = ("tensorflow-datasets==4.9.10",)

_VOCABULARY = (
    "the|be|to|of|and|that|have|with|ship|sea|Sea's|don't|e.g.|end.Next|U.S.|3.14|1,000|well-known|cafe\u0301|naïve",
    "#|##|…|...|--|•|-|*|{|}|[3]|[edit]|[citation needed]|(|)|“quoted”|'tis|foo_bar|x=1;|🙂",
    "人工|智能。|カタカナ|การ|привет|мир!|http://example.org/a?b=c|antidisestablishmentarianism|javascript|JavaScript",
    "cookies|lorem|lorem ipsum|ipsum|terms of use|Terms of Use|privacy policy|uses cookies",
)


def main() -> None:
    """Make the texts, ask both peers, and write one JSON object a line."""
    texts = [*_real_texts(), *_made_texts(random.Random(1))]
    terminal = "".join(chr(code) for code, flags in enumerate(character_flags()) if flags & TERMINAL)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.jsonl"
        path.write_text(
            "".join(json.dumps({"text": text, "terminal": terminal}) + "\n" for text in texts), "utf-8"
        )
        failed = _lines(
            [
                peer_python("datatrove", DATATROVE),
                PEERS / "datatrove_filters.py",
                "verdicts",
                path,
                "gristmill",
            ]
        )
        tfds = _lines([peer_python("tfds", TFDS), PEERS / "tfds_c4.py", path])
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(GOLDEN, "wb", mtime=0) as out:
        for text, rules, page in zip(texts, failed, tfds, strict=True):
            out.write(json.dumps({"text": text, "datatrove": rules, "tfds": page}).encode() + b"\n")
    print(f"{len(texts)} texts in {GOLDEN}")


def _real_texts() -> list[str]:
    texts = []
    for name, every, longest in (("books", 1, 6000), ("bible", 40, 3000), ("python-docs", 4, 4000),
                                 ("handbook", 12, 3000), ("python-code", 5, 3000)):  # fmt: skip
        with gzip.open(f"sample/corpus/{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                if number % every == 0 and len(texts) < 400:
                    start = 1000 * (number % 3)
                    texts.append(normalise(json.loads(line)["raw"][start : start + longest]))
    return [text for text in texts if text]


def _made_texts(rng: random.Random) -> list[str]:
    """Repetitive, listed, citing, shouting, foreign and broken texts."""
    vocabulary = [word for line in _VOCABULARY for word in line.split("|")]
    ends = [".", "!", "?", '"', "'", "...", "…", ",", "", ":", "。", ". [1]", ".[2]", " "]
    starts = ["", "", "", "- ", "• ", "* ", "  ", "1. "]
    texts = []
    for number in range(400):
        few = rng.sample(vocabulary, rng.randint(3, len(vocabulary)))
        lines = []
        if number % 20 == 0:
            few, starts_here, ends_here = ["list", "of", "things"], ["- ", "• "], [""]
        else:
            starts_here, ends_here = starts, ends
        for _ in range(rng.randint(1, 30)):
            if lines and rng.random() < rng.choice([0.05, 0.3, 0.6]):
                lines.append(rng.choice(lines))
            else:
                words = " ".join(rng.choices(few, k=rng.choice([1, 2, 3, 4, 5, 8, 20])))
                lines.append(rng.choice(starts_here) + words + rng.choice(ends_here))
            if rng.random() < (1.0 if number % 10 == 1 else 0.3):
                lines.append("")
        texts.append(normalise("\n".join(lines)))
    texts.append(normalise("a word of some length " + "x" * 1001 + " stands in this line.\n" * 6))
    return [text for text in texts if text]


def _lines(command: list) -> list:
    said = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in said.splitlines() if line.startswith(("{", "["))]


if __name__ == "__main__":
    main()
