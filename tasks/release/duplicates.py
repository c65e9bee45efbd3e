"""Duplicates side by side: what was kept, what went, and where they differ."""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Segment:
    """A run of text that both sides share, or that one side alone has."""

    text: str
    differs: bool


@dataclass(frozen=True)
class Side:
    """One document of a pair, with an excerpt; ``cut`` where text stands before it, ``more`` where behind."""

    id: str
    source: str
    origin: str
    characters: int
    cut: bool
    more: bool
    excerpt: list[Segment]


@dataclass(frozen=True)
class DuplicatePair:
    """A removed document and the one kept in its place."""

    rule: str
    similarity: float | None
    kept: Side
    removed: Side


def duplicate_pairs(ledger: Path, documents: Path, examples: int, excerpt: int) -> list[DuplicatePair]:
    """For each rule of the ledger the ``examples`` pairs that are least alike, ties by id.

    ``documents`` are those the stage read, which hold both sides. Excerpts of ``excerpt`` characters begin
    shortly before the first difference. Empty where either directory is missing.
    """
    if not ledger.is_dir() or not documents.is_dir():
        return []
    least: dict[str, list[tuple[float, str, str]]] = {}
    for row in _removals(ledger):
        value = 1.0 if row["value"] is None else row["value"]
        rows = least.setdefault(row["rule"], [])
        rows.append((value, row["id"], row["detail"]))
        if len(rows) > 64 + examples:
            least[row["rule"]] = heapq.nsmallest(examples, rows)
    chosen = [(rule, *row) for rule in sorted(least) for row in heapq.nsmallest(examples, least[rule])]
    texts = _documents(documents, sorted({name for _, _, *ids in chosen for name in ids}))
    return [
        _pair(rule, value, texts[kept], texts[removed], excerpt)
        for rule, value, removed, kept in chosen
        if kept in texts and removed in texts
    ]


def excerpts(left: str, right: str, length: int) -> tuple[int, list[Segment], list[Segment]]:
    """``length`` characters of both texts from shortly before their first difference, word by word.

    The first value is where the excerpts begin.
    """
    pairs = enumerate(zip(left, right, strict=False))
    common = next((place for place, (a, b) in pairs if a != b), min(len(left), len(right)))
    start = 0 if common >= max(len(left), len(right)) else max(0, common - length // 4)
    if start:
        start = left.rfind(" ", 0, start) + 1
    words = [re.findall(r"\s+|\S+", text[start : start + length]) for text in (left, right)]
    matcher = difflib.SequenceMatcher(None, *words, autojunk=False)
    sides: tuple[list[Segment], list[Segment]] = ([], [])
    changes = matcher.get_opcodes()
    whole = start + length >= min(len(left), len(right))
    if not whole and changes[-1][0] != "equal" and sum(kind != "equal" for kind, *_ in changes) > 1:
        changes.pop()  # a difference of where the excerpts end, not of the texts
    for kind, a, b, c, d in changes:
        for side, part in zip(sides, (words[0][a:b], words[1][c:d]), strict=True):
            if part:
                side.append(Segment("".join(part), kind != "equal"))
    return start, *sides


def _pair(
    rule: str, value: float, kept: dict[str, Any], removed: dict[str, Any], length: int
) -> DuplicatePair:
    start, kept_excerpt, removed_excerpt = excerpts(kept["text"], removed["text"], length)
    return DuplicatePair(
        rule, value, _side(kept, start, kept_excerpt), _side(removed, start, removed_excerpt)
    )


def _side(document: dict[str, Any], start: int, excerpt: list[Segment]) -> Side:
    text = document["text"]
    return Side(
        id=document["id"],
        source=document["source"],
        origin=document["origin"],
        characters=len(text),
        cut=start > 0,
        more=start + sum(len(part.text) for part in excerpt) < len(text),
        excerpt=excerpt,
    )


def _removals(ledger: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    columns = ["id", "rule", "value", "verdict", "detail"]
    for part in sorted(ledger.glob("*.parquet")):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=65536, columns=columns):
                for row in batch.to_pylist():
                    if row["verdict"] == "removed" and row["detail"]:
                        yield row


def _documents(documents: Path, ids: list[str]) -> dict[str, dict[str, Any]]:
    import pyarrow.dataset as ds

    if not ids:
        return {}
    parts = [str(part) for part in sorted(documents.glob("*.parquet"))]
    table = ds.dataset(parts, format="parquet").to_table(
        columns=["id", "source", "origin", "text"], filter=ds.field("id").isin(ids), batch_size=1024
    )
    return {row["id"]: row for row in table.to_pylist()}
