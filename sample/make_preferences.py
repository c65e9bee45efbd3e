"""Make `preferences/pairs.jsonl.gz` from the real answers in `instructions/`.

The chosen answer is a real one. The rejected answer is the same answer spoiled by a named rule:

- `cut`: ended in the middle of a sentence, after 55 to 85 % of its words;
- `looped`: from its first quarter on one phrase of two to four words repeats, up to the same number of words;
- `scrambled`: the same words in another order;
- `other`: the real answer to another question of the same source, language and split, 22 to 68 % longer where
  there is one, so that over all pairs neither side is the longer one.

Every choice is drawn from SHA-256 of the seed and the texts: no state, no random number generator, the same
rows on every Python version. A word is a run of characters without white space; a CJK character is a word by
itself.

Run it as `python sample/make_preferences.py`. It needs nothing but the standard library.
"""

import argparse
import gzip
import hashlib
import json
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

SEED = "gristmill-preferences-1"
HELD_OUT_PERCENT = 10
PAIRS_PER_ANSWER = 2
MIN_WORDS = 4
SENTENCE_ENDS = tuple(".!?…。！？")
NO_ENDING = (*SENTENCE_ENDS, ",", ";", ":", "，", "；", "：", "、", ")", '"', "”", "`")

_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"([{_CJK}]|[^\s{_CJK}]+)(\s*)")

Row = dict[str, Any]


def split_of(prompt: str) -> str:
    """Return `held_out` for about one prompt in ten, else `train`.

    Case, punctuation and white space do not count: "What is AI?" and "what is ai" fall into the same split.
    """
    key = hashlib.sha256(_folded(prompt).encode()).hexdigest()
    return "held_out" if int(key[:8], 16) % 100 < HELD_OUT_PERCENT else "train"


def make_pairs(rows: Sequence[Row]) -> list[Row]:
    """Spoil every answer of at least four words by the two rules used least so far that apply to it."""
    by_group: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        by_group[row["source"], row["lang"], split_of(row["instruction"])].append(row)
    used: Counter[str] = Counter()
    pairs = []
    for row in sorted(rows, key=lambda r: _draw(r["instruction"], r["output"])):
        prompt, answer = row["instruction"], row["output"].strip()
        if len(_words(answer)) < MIN_WORDS:
            continue
        peers = by_group[row["source"], row["lang"], split_of(prompt)]
        spoiled = {rule: spoil(answer) for rule, spoil in SPOILERS.items()} | {"other": other(row, peers)}
        usable = [rule for rule, text in spoiled.items() if text is not None and text != answer]
        for rule in sorted(usable, key=lambda rule: (used[rule], rule))[:PAIRS_PER_ANSWER]:
            used[rule] += 1
            pairs.append(
                {
                    "prompt": prompt,
                    "chosen": answer,
                    "rejected": spoiled[rule],
                    "rule": rule,
                    "split": split_of(prompt),
                    "lang": row["lang"],
                    "source": row["source"],
                    "licence": row["licence"],
                }
            )
    return pairs


def cut(answer: str) -> str | None:
    """End in the middle of a sentence. None unless the answer has six words and ends a sentence."""
    words = _words(answer)
    if len(words) < 6 or not answer.endswith(SENTENCE_ENDS):
        return None
    keep = int(len(words) * _cut_fraction(answer))
    while keep > 2 and words[keep - 1][0].endswith(NO_ENDING):
        keep -= 1
    text = _join(words[:keep]).rstrip()
    return None if text.endswith(NO_ENDING) else text


def looped(answer: str) -> str | None:
    """Repeat one phrase from the first quarter on. None for an answer of less than eight words."""
    words = _words(answer)
    if len(words) < 8:
        return None
    start = len(words) // 4
    length = min(2 + int(3 * _draw("phrase", answer)), (len(words) - start) // 2)
    phrase = words[start : start + length]
    # The phrase may end a line or the answer: between repeats is one space, none after a CJK character.
    last = phrase[-1][0]
    phrase[-1] = (last, "" if re.search(rf"[{_CJK}]$", last) else " ")
    tail = [phrase[i % len(phrase)] for i in range(len(words) - start)]
    return _join(words[:start] + tail).rstrip()


def scrambled(answer: str) -> str | None:
    """Put the words in another order; the white space stays where it was."""
    words = _words(answer)
    order = sorted(range(len(words)), key=lambda i: _draw("order", answer, str(i)))
    return _join((words[i][0], space) for i, (_, space) in zip(order, words, strict=True)).rstrip()


def other(row: Row, peers: Iterable[Row]) -> str | None:
    """Return a real answer to another question: one of the eight that are nearest to the wanted length.

    The wanted length lies one and a half times as far above the real one as `cut` would go below it: `cut`
    falls on longer answers, and this is what balances the two over all pairs (README.md has the figures).
    """
    own = _folded(row["instruction"])
    same_question = {p["output"].strip() for p in peers if _folded(p["instruction"]) == own}
    answer = row["output"].strip()
    wanted = len(answer) * (1 + 1.5 * (1 - _cut_fraction(answer)))
    texts = {p["output"].strip() for p in peers} - same_question
    nearest = sorted(texts, key=lambda text: (abs(len(text) - wanted), text))[:8]
    return nearest[int(len(nearest) * _draw("other", row["instruction"], answer))] if nearest else None


SPOILERS: dict[str, Callable[[str], str | None]] = {"cut": cut, "looped": looped, "scrambled": scrambled}


def read_rows(folder: Path) -> list[Row]:
    """Read every `*.jsonl.gz` of a folder, in the order of the file names."""
    rows = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            rows.extend(json.loads(line) for line in lines)
    return rows


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write JSON Lines, gzip level 9, without file name and time: the same rows give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed:
        for row in rows:
            packed.write((json.dumps(row, ensure_ascii=False) + "\n").encode())


def _words(text: str) -> list[tuple[str, str]]:
    """Split a text into (word, white space after it)."""
    return [(match[1], match[2]) for match in _WORD.finditer(text)]


def _join(words: Iterable[tuple[str, str]]) -> str:
    return "".join(word + space for word, space in words)


def _folded(prompt: str) -> str:
    folded = re.sub(r"[\W_]+", " ", unicodedata.normalize("NFKC", prompt).casefold()).strip()
    return folded or prompt


def _cut_fraction(answer: str) -> float:
    return 0.55 + 0.3 * _draw("cut", answer)


def _draw(*parts: str) -> float:
    """Return a number in [0, 1) that depends on the seed and the parts alone."""
    key = hashlib.sha256("\0".join((SEED, *parts)).encode()).digest()
    return int.from_bytes(key[:6], "big") / 2**48


def main() -> None:
    """Write the pairs beside this file, or where `--out` says."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Make preference pairs from the sample's real answers.")
    parser.add_argument("--instructions", type=Path, default=here / "instructions")
    parser.add_argument("--out", type=Path, default=here / "preferences" / "pairs.jsonl.gz")
    arguments = parser.parse_args()
    rows = read_rows(arguments.instructions)
    if not rows:
        parser.error(f"no *.jsonl.gz with instructions in {arguments.instructions}")
    pairs = make_pairs(rows)
    write_rows(pairs, arguments.out)
    print(f"{len(pairs)} pairs from {len(rows)} answers in {arguments.out}")


if __name__ == "__main__":
    main()
