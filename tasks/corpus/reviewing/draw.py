"""A sample of every rule's removals and of what was kept, written for people to judge."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tasks.corpus.reviewing.edits import COMPARED_CHARACTERS, Edit, edits
from tasks.corpus.reviewing.page import render_page
from tasks.corpus.reviewing.population import JUDGED, draw, last_layer
from tasks.corpus.reviewing.privacy import shown
from tasks.corpus.reviewing.rows import TEXT_ROWS, rows_of
from tasks.corpus.reviewing.sample import KEPT_RULE, ReviewError, ReviewParams, Sample, sample_json
from tasks.records import DUPLICATE_RULES, order_key, read_lineage
from tasks.stage import publish

FINDING_COLUMNS = ["stage", "rule", "value", "threshold", "verdict", "detail"]
FACTS = ["source", "origin", "language", "kind"]


@dataclass(frozen=True)
class Drawn:
    """What was written, and of how many documents."""

    sample: Sample
    documents: int
    page: Path
    lines: Path


def draw_review(data: Path, out: Path, params: ReviewParams) -> Drawn:
    """Draw documents for review, and write ``review.jsonl``, ``review.html`` and ``sample.json`` to ``out``.

    Of every rule of score, clean and dedup up to ``params.removed`` documents that it removed, and
    ``params.kept`` of those that none removed: the ones with the smallest hash of seed, rule and id, so that
    equal layers give equal samples. Each document has all that any rule said of it. Texts are those that the
    rule's stage read (removed) or that clean wrote (kept), with personal data masked. Nothing is held but
    what was drawn and a batch of rows.

    Raises:
        ReviewError: the layers are not there, or do not belong together.
    """
    if not (data / "scored" / "documents").is_dir() or not (data / "clean" / "documents").is_dir():
        raise ReviewError(
            f"{data} has no scored and clean documents to draw from: `gristmill run corpus` makes them"
        )
    sample = draw(data, params)
    items = _items(data, sample, params)
    out.mkdir(parents=True, exist_ok=True)
    drawn = Drawn(sample, len(items), out / "review.html", out / "review.jsonl")
    with publish(out / "sample.json") as path:
        path.write_text(sample_json(sample), "utf-8")
    with publish(drawn.lines) as path, path.open("wb") as file:
        for item in items:
            # A lone surrogate becomes the escape that JSON has for it.
            file.write(json.dumps(item, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    with publish(drawn.page) as path:
        path.write_text(render_page(sample, items), "utf-8")
    return drawn


def _items(data: Path, sample: Sample, params: ReviewParams) -> list[dict[str, Any]]:
    """One item for each document, in an order that says nothing of rules."""
    drawn_for = sample.drawn_for()
    findings = _findings(data, drawn_for)
    key = _mask_key(data)
    texts = _texts(data, drawn_for, params.text_characters, key)
    edited = _edited(data, [name for name, rules in drawn_for.items() if rules == [KEPT_RULE]])
    beside = _kept_instead(data, findings, params.text_characters, key)
    items = []
    for name in sorted(texts, key=lambda name: order_key(params.seed, name)):
        passages, count = edited.get(name, ([], 0))
        instead = next((beside[kept] for kept in _originals(findings[name]) if kept in beside), None)
        items.append(
            {"id": name, "rules": drawn_for[name], "findings": findings[name], **texts[name],
             "edits": [asdict(edit) for edit in passages], "edits_found": count, "kept_instead": instead}
        )  # fmt: skip
    return items


def _findings(data: Path, drawn_for: dict[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in drawn_for}
    for _, layer in JUDGED.values():
        for row in rows_of(data / layer / "ledger", drawn_for, FINDING_COLUMNS):
            found[row["id"]].append({name: row[name] for name in FINDING_COLUMNS})
    order = list(JUDGED)
    for rows in found.values():
        rows.sort(key=lambda row: (order.index(row["stage"]), row["rule"], row["detail"] or ""))
    return found


def _texts(data: Path, drawn_for: dict[str, list[str]], limit: int, key: bytes) -> dict[str, dict[str, Any]]:
    """Facts and shown text of each document, from the layer where it was last seen."""
    wanted: dict[Path, list[str]] = {}
    for name, rules in drawn_for.items():
        stage = rules[0].partition("/")[0]
        layer = last_layer(data) if rules[0] == KEPT_RULE else data / JUDGED[stage][0]
        wanted.setdefault(layer, []).append(name)
    found = {}
    for layer, names in wanted.items():
        for row in rows_of(layer / "documents", names, [*FACTS, "text"], TEXT_ROWS):
            text = row["text"] or ""
            facts = {fact: row.get(fact) for fact in FACTS}
            found[row["id"]] = facts | {"characters": len(text), "text": shown(text, limit, key)}
        if missing := [name for name in names if name not in found]:
            raise ReviewError(
                f"{layer / 'documents'} lacks {len(missing)} of the documents that the next ledger names, "
                f"{missing[0]} among them: the layers are of different runs. `gristmill run corpus` mends it"
            )
    return found


def _edited(data: Path, names: list[str]) -> dict[str, tuple[list[Edit], int]]:
    """What clean changed in documents that were kept."""
    before = {}
    for row in rows_of(data / "scored" / "documents", names, ["text"], TEXT_ROWS):
        before[row["id"]] = row["text"][: COMPARED_CHARACTERS + 1]  # one more tells that there is more
    found = {}
    for row in rows_of(data / "clean" / "documents", names, ["text"], TEXT_ROWS):
        if row["id"] in before:
            found[row["id"]] = edits(before[row["id"]], row["text"])
    return found


def _kept_instead(
    data: Path, findings: dict[str, list[dict[str, Any]]], limit: int, key: bytes
) -> dict[str, dict[str, Any]]:
    """The documents that were kept in place of duplicates."""
    names = {kept for rows in findings.values() for kept in _originals(rows)}
    found = {}
    for row in rows_of(data / "clean" / "documents", names, [*FACTS, "text"], TEXT_ROWS):
        facts = {fact: row.get(fact) for fact in ("id", "source", "origin")}
        found[row["id"]] = facts | {"text": shown(row["text"], limit, key)}
    return found


def _originals(findings: list[dict[str, Any]]) -> list[str]:
    return [row["detail"] for row in findings if row["rule"] in DUPLICATE_RULES and row["detail"]]


def _mask_key(data: Path) -> bytes:
    """The key of clean's placeholders: a value has the same one here."""
    by_stage = {entry["stage"]: entry["parameters"] for entry in read_lineage(data / "clean")}
    return str(by_stage.get("clean", {}).get("mask_key", "")).encode()
