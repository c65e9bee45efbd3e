"""A document's whole story: in which layers it is, and what every ledger says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.layer_files import reading
from tasks.records import DUPLICATE_RULES

if TYPE_CHECKING:
    import pyarrow.compute as pc

LAYERS = ("raw", "scored", "clean", "unique", "mixture", "snapshot")

TOLD_COLUMNS = ("id", "source", "origin", "kind", "domain", "language", "license", "split", "text")
SHOWN_CHARACTERS = 300


class UnknownDocument(Exception):
    """No document has this id, or several begin with it."""


class AmbiguousDocument(UnknownDocument):
    """Several documents' ids begin so."""


@dataclass(frozen=True)
class Entry:
    """A line of a ledger."""

    layer: str
    stage: str
    rule: str
    value: float | None
    threshold: float | None
    verdict: str
    detail: str | None


@dataclass(frozen=True)
class Story:
    """What is known of a document; ``kept_instead`` is what is known of the one it is a duplicate of."""

    id: str
    layers: tuple[str, ...]
    missing_layers: tuple[str, ...]
    facts: dict[str, Any]
    entries: list[Entry]
    stands_for: list[str] = field(default_factory=list)
    kept_instead: Story | None = None


def explain(data: Path, prefix: str) -> Story:
    """The story of the document whose id is, or begins with, ``prefix``.

    Args:
        data: the directory that holds the layers.
        prefix: an id of 32 hexadecimal digits, or enough of its beginning.

    Raises:
        UnknownDocument: if no document's id begins so, or several do (they are named).
        StageError: a file of a layer is damaged.
    """
    prefix = prefix.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{1,32}", prefix):
        raise UnknownDocument(f"{prefix!r} is no document id: 32 hexadecimal digits, or their beginning")
    if not any((data / layer).is_dir() for layer in LAYERS):
        raise UnknownDocument(f"{data} has no documents yet: `gristmill run corpus` makes them")
    return _story(data, _complete(data, prefix))


def contents_of(data: Path, name: str) -> list[str]:
    """The hashes of a document's text as it was scored and as it was cleaned; as collected if it was not."""
    import pyarrow.compute as pc

    found = {
        layer: _rows(data / layer / "documents", pc.field("id") == name, ("content",))
        for layer in ("scored", "clean", "raw")
    }
    rows = [*found["scored"], *found["clean"]] or found["raw"]
    return sorted({row["content"] for row in rows})


def render(story: Story) -> str:
    """A story as text for a terminal."""
    lines = [f"document {story.id}"]
    for name, value in story.facts.items():
        if value is None or name in ("id", "text"):
            continue
        lines.append(f"  {name}: {value}")
    if text := story.facts.get("text"):
        short = " ".join(text[: 2 * SHOWN_CHARACTERS].split())
        more = "…" if len(short) > SHOWN_CHARACTERS or len(text) > 2 * SHOWN_CHARACTERS else ""
        lines.append(f"  text ({len(text)} characters): {short[:SHOWN_CHARACTERS]}{more}")
    lines.append("")
    for layer in LAYERS:
        if layer in story.missing_layers:
            lines.append(f"  {layer:<8}  not made yet")
            continue
        lines.append(f"  {layer:<8}  {'yes' if layer in story.layers else 'no'}")
        lines += [f"            {_sentence(entry)}" for entry in story.entries if entry.layer == layer]
    if story.stands_for:
        shown = ", ".join(story.stands_for[:5])
        more = f" and {len(story.stands_for) - 5} more" if len(story.stands_for) > 5 else ""
        lines += ["", f"kept in place of {shown}{more}"]
    if story.kept_instead is not None and not (story.kept_instead.layers or story.kept_instead.entries):
        lines += ["", f"the one that was kept, {story.kept_instead.id}, is of an earlier month"]
    elif story.kept_instead is not None:
        lines += [
            "",
            "the one that was kept:",
            *(f"  {line}" for line in render(story.kept_instead).splitlines()),
        ]
    return "\n".join(lines)


def _story(data: Path, name: str, follow: bool = True) -> Story:
    import pyarrow.compute as pc

    layers, missing, facts, entries, stands_for = [], [], {}, [], []
    for layer in LAYERS:
        if not (data / layer).is_dir():
            missing.append(layer)
            continue
        rows = _rows(data / layer / "documents", pc.field("id") == name, TOLD_COLUMNS)
        if rows:
            layers.append(layer)
            facts |= {key: value for key, value in rows[0].items() if value is not None}
        for row in _rows(data / layer / "ledger", pc.field("id") == name):
            entries.append(Entry(layer, *(row[key] for key in list(Entry.__annotations__)[1:])))
        duplicates = pc.field("rule").isin(DUPLICATE_RULES) & (pc.field("detail") == name)
        stands_for += [row["id"] for row in _rows(data / layer / "ledger", duplicates, ("id",))]
    kept = next((entry.detail for entry in entries if entry.rule in DUPLICATE_RULES), None)
    if kept == name:  # it was collected again, and an earlier month has it
        instead = Story(name, (), tuple(missing), {}, [])
        stands_for = [other for other in stands_for if other != name]
    else:
        instead = _story(data, kept, follow=False) if kept and follow else None
    return Story(name, tuple(layers), tuple(missing), facts, entries, stands_for, instead)


def _complete(data: Path, prefix: str) -> str:
    import pyarrow.compute as pc

    found: set[str] = set()
    for layer in LAYERS:
        for part in ("documents", "ledger"):
            begins = (pc.field("id") >= prefix) & (pc.field("id") <= prefix + "g")  # behind every hex digit
            found |= {row["id"] for row in _rows(data / layer / part, begins, ("id",))}
    if not found:
        raise UnknownDocument(f"no document's id begins with {prefix}")
    if len(found) > 1:
        shown = ", ".join(sorted(found)[:5])
        raise AmbiguousDocument(
            f"{len(found)} documents' ids begin with {prefix}: {shown}{', …' * (len(found) > 5)}"
        )
    return found.pop()


def _rows(
    directory: Path, condition: pc.Expression, columns: tuple[str, ...] | None = None
) -> list[dict[str, Any]]:
    """Rows of a Parquet directory, read part by part so that only what fits the condition is held."""
    import pyarrow.dataset as ds

    if not directory.is_dir() or not any(directory.glob("*.parquet")):
        return []
    with reading(directory):
        dataset = ds.dataset(directory, format="parquet")
        wanted = [name for name in columns if name in dataset.schema.names] if columns else None
        return dataset.to_table(filter=condition, columns=wanted).to_pylist()


def _sentence(entry: Entry) -> str:
    parts = [
        f"{entry.stage}: {entry.verdict} by {entry.rule}"
        if entry.verdict != "kept"
        else f"{entry.stage}: {entry.rule}"
    ]
    if entry.value is not None:
        parts.append(f"measured {entry.value:g}")
    if entry.threshold is not None:
        parts.append(f"threshold {entry.threshold:g}")
    if entry.detail:
        parts.append(entry.detail)
    return ", ".join(parts)
