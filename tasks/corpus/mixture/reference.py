"""The shares of another mixture or snapshot, or those that a person wrote into a file."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpus.mixture.plan import By
from tasks.stage import StageError

KINDS = "the report of stage mix, the manifest of a snapshot, or an object {value: share}"


@dataclass(frozen=True)
class Reference:
    """How much of each value there is in a reference."""

    path: Path
    counts: dict[str, float]
    unit: str
    """what is counted, in words; ``shares`` where they are given as such"""


def read_reference(path: Path, by: By) -> Reference:
    """Read a reference's amounts by the values of one column.

    ``path`` is a file of one of three kinds: the report of stage mix, a manifest, or ``{value: share}``; or a
    folder that has the first or the second: that of a project, of a run, or of a snapshot.

    Raises:
        StageError: there is none, it cannot be read, or it does not tell of this column.
    """
    if not path.is_dir():
        return _read(path, by)
    places = [path / place for place in ("reports/mix.json", "data/snapshot/manifest.json", "manifest.json")]
    found = [place for place in places if place.is_file()]
    if not found:
        raise StageError(f"{path} has no mixture's report and no manifest of a snapshot in it")
    complaints = []
    for place in found:
        try:
            return _read(place, by)
        except StageError as error:
            complaints.append(str(error))
    raise StageError("\n".join(complaints))


def _read(path: Path, by: By) -> Reference:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise StageError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise StageError(f"{path} is not UTF-8: {error}") from None
    except json.JSONDecodeError as error:
        raise StageError(f"{path} is not valid JSON: {error}; it may be {KINDS}") from None
    if not isinstance(content, dict):
        raise StageError(f"{path} must be {KINDS}, not {type(content).__name__}")
    if "records_in" in content or "grouped_by" in content:
        return Reference(path, _of_report(path, content, by), "bytes of training text")
    if isinstance(content.get("counts"), dict):
        counted = content["counts"].get(by)
        if not isinstance(counted, dict):
            raise StageError(f"{path} counts no {by}; it counts {', '.join(sorted(content['counts']))}")
        known: dict[str, float] = {}
        for value, count in _numbers(path, counted):
            # A manifest counts what is not known under an empty name, the mixture under `und`.
            known[value or "und"] = known.get(value or "und", 0) + count
        return Reference(path, known, "documents, whatever their length")
    shares = dict(_numbers(path, content))
    if not shares:
        raise StageError(f"{path} is empty: it may be {KINDS}")
    return Reference(path, shares, "shares")


def _of_report(path: Path, report: dict[str, Any], by: By) -> dict[str, float]:
    columns = report.get("grouped_by")
    if not isinstance(columns, list) or by not in columns:
        groups = ", ".join(map(str, columns)) if isinstance(columns, list) else "nothing"
        raise StageError(f"{path} does not tell of {by}: that mixture was grouped by {groups}")
    depth, counts = columns.index(by), Counter[str]()
    try:
        for group in report["groups"]:
            counts[group["group"][depth]] += group["bytes"]
    except (KeyError, IndexError, TypeError):
        raise StageError(f"{path} is no report of stage mix: its groups are broken") from None
    return dict(counts)


def _numbers(path: Path, values: dict[str, Any]) -> list[tuple[str, float]]:
    for value, number in values.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise StageError(f"{path}: `{value}` must be a number, not {json.dumps(number)[:80]}")
        if number < 0:
            raise StageError(f"{path}: `{value}` must be 0 or more, not {number:g}")
    return list(values.items())
