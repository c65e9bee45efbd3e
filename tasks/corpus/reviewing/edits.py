"""What clean changed in a document that it kept: passages before and after."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.corpus.reviewing.privacy import veiled

COMPARED_CHARACTERS = 200_000
LOOK_AHEAD = 20
"""Lines behind a difference among which the texts are looked for to meet again."""


@dataclass(frozen=True)
class Edit:
    """A passage; ``before`` or ``after`` is empty where lines were added or taken out."""

    before: str
    after: str


def edits(before: str, after: str, most: int = 20, characters: int = 600) -> tuple[list[Edit], int]:
    """The first ``most`` passages in which the texts differ, and how many there are.

    Letters and digits of personal data are veiled on both sides. Of a passage longer than ``characters`` that
    much is shown from shortly before the first difference. Compared are the first
    `COMPARED_CHARACTERS`. Lines are matched in linear time, which suits edits that take lines out and replace
    inside of lines, as clean's do.
    """
    whole = max(len(before), len(after)) <= COMPARED_CHARACTERS
    before, after = before[:COMPARED_CHARACTERS], after[:COMPARED_CHARACTERS]
    spans = list(_differences(before.split("\n"), after.split("\n")))
    if len(spans) > 1 and not whole:
        spans.pop()  # where the comparison ends, the texts differ by what was taken out before
    if not spans:
        return [], 0
    left, right = veiled(before).split("\n"), veiled(after).split("\n")
    shown = [_excerpt("\n".join(left[a:b]), "\n".join(right[c:d]), characters) for a, b, c, d in spans[:most]]
    return shown, len(spans)


def _differences(left: list[str], right: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of lines that differ, in order."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, line in enumerate(left):
        places[line].append(place)
    i = j = 0
    while i < len(left) or j < len(right):
        begin = i, j
        while (i < len(left) or j < len(right)) and left[i : i + 1] != right[j : j + 1]:
            i, j = _meeting(left, right, i, j, places)
        if (i, j) != begin:
            yield begin[0], i, begin[1], j
        i, j = i + 1, j + 1


def _meeting(
    left: list[str], right: list[str], i: int, j: int, places: defaultdict[str, list[int]]
) -> tuple[int, int]:
    """The nearest lines at or behind (i, j) where both texts agree again; the ends if there are none."""
    best: tuple[int, int] | None = None
    for other in range(j, min(j + LOOK_AHEAD, len(right))):
        if not right[other].strip() and other + 1 < len(right):
            continue  # blank lines agree everywhere
        at = places.get(right[other], [])
        behind = bisect_left(at, i)
        if behind < len(at) and (best is None or at[behind] + other < sum(best)):
            best = at[behind], other
    if best is not None:
        return best
    if j + LOOK_AHEAD >= len(right):
        return len(left), len(right)
    return min(i + 1, len(left)), j + 1


def _excerpt(before: str, after: str, characters: int) -> Edit:
    if max(len(before), len(after)) <= characters:
        return Edit(before, after)
    pairs = enumerate(zip(before, after, strict=False))
    common = next((place for place, (a, b) in pairs if a != b), min(len(before), len(after)))
    start = max(0, common - characters // 4)
    return Edit(*(_cut(text, start, characters) for text in (before, after)))


def _cut(text: str, start: int, characters: int) -> str:
    end = start + characters
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
