"""Values planted in real text among traps, with their places.

Hosts are sentences of the sample without an @ or five digits in a row, so that what is planted is all there
is.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from dataclasses import dataclass
from pathlib import Path

from tasks.corpus.pii.find import KINDS, Found
from tests.corpus.pii.planted_values import planted
from tests.corpus.pii.traps import trap

SAMPLE = Path(__file__).parents[3] / "sample" / "corpus"
PER_KIND = 240
TRAPS = 1200


@dataclass(frozen=True)
class Labelled:
    """A text, and the kind, start and end of what was planted in it."""

    text: str
    planted: tuple[Found, ...]


def host_sentences() -> dict[str, list[str]]:
    """Sentences and lines of the sample by language, without an @, a slash pair or five digits in a row."""
    hosts: dict[str, list[str]] = {"prose": [], "zh": [], "code": []}
    for name, group in (
        ("books", "prose"),
        ("python-docs", "prose"),
        ("handbook", "zh"),
        ("python-code", "code"),
    ):
        with gzip.open(SAMPLE / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in list(lines)[-60:]:
                raw = json.loads(line)["raw"]
                found = (
                    re.findall("[\u4e00-\u9fff，。、]{15,60}", raw)
                    if group == "zh"
                    else re.findall(r"(?m)^[^\n\r]{30,110}$", raw)
                )
                hosts[group] += [each.strip() for each in found if not re.search("@|://|[0-9]{5}", each)][:60]
    return hosts


def labelled_set(seed: int) -> list[Labelled]:
    """Texts of three hosts with a value or a trap before and after the second."""
    rng = random.Random(seed)
    hosts = host_sentences()
    things: list[str | None] = [kind for kind in KINDS for _ in range(PER_KIND)] + [None] * TRAPS
    rng.shuffle(things)
    texts = []
    for at in range(0, len(things), 2):
        pair = things[at : at + 2]
        group = hosts["code" if "secret" in pair else rng.choice(["prose", "prose", "zh", "code"])]
        text, labels = rng.choice(group), []
        for kind in pair:
            before, value, after = planted(rng, kind) if kind else ("", trap(rng), "")
            text += rng.choice([" ", "\n"]) + before
            if kind:
                labels.append(Found(kind, len(text), len(text) + len(value)))
            text += value + after + rng.choice([" ", "\n"]) + rng.choice(group)
        texts.append(Labelled(text, tuple(labels)))
    return texts
