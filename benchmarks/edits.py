"""Documents made from real ones by real edits: cut, paste, reorder, reformat."""

from __future__ import annotations

import random


def edited(text: str, seed: int) -> str:
    """The text with one to three edits; which ones depends on the seed and the text alone."""
    rng = random.Random(f"{seed}:{text[:64]}:{len(text)}")
    for _ in range(rng.randint(1, 3)):
        text = rng.choice((_cut, _paste, _reordered, _reformatted, _said_otherwise))(text, rng)
    return text


def _cut(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    first = rng.randrange(len(lines))
    return "\n".join(lines[:first] + lines[first + rng.randint(1, max(1, len(lines) // 4)) :]) or text


def _paste(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return f"{text[:at]} (see entry {rng.randrange(10**6)} of the list, revised) {text[at:]}"


def _reordered(text: str, rng: random.Random) -> str:
    paragraphs = text.split("\n\n")
    one, other = rng.randrange(len(paragraphs)), rng.randrange(len(paragraphs))
    paragraphs[one], paragraphs[other] = paragraphs[other], paragraphs[one]
    return "\n\n".join(paragraphs)


def _reformatted(text: str, rng: random.Random) -> str:
    return rng.choice((text.upper, lambda: text.replace("\n", " "), lambda: text.replace(" ", "  ")))()


def _said_otherwise(text: str, rng: random.Random) -> str:
    words = text.split(" ")
    for _ in range(rng.randint(1, max(1, len(words) // 10))):
        words[rng.randrange(len(words))] = f"w{rng.randrange(10**6)}"
    return " ".join(words)
