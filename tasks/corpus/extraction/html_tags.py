"""The text of markup that is too strange for a parser, by striking out its tags in one pass."""

from __future__ import annotations

import html
import re

_BREAK = re.compile(
    r"</?(?:address|article|blockquote|br|caption|dd|div|dl|dt|figure|h[1-6]|hr|li|main|ol|p|pre|section|table|tr|ul)$",
    re.IGNORECASE,
)
_NAME = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,20}")
_SKIPPED = ("script", "style", "title", "template", "noscript")


def text_without_tags(markup: str) -> str:
    """Text between the tags, a blank line where a block begins or ends; scripts and comments are left out."""
    parts: list[str] = []
    position, end = 0, len(markup)
    folded = markup.lower() if markup.isascii() else _ascii_lower(markup)
    missing: set[str] = set()
    while position < end:
        start = markup.find("<", position)
        if start < 0:
            parts.append(markup[position:])
            break
        parts.append(markup[position:start])
        if markup.startswith("<!--", start):
            position = _after(markup, "-->", start + 4, missing)
            continue
        name = _NAME.match(markup, start)
        if name is None:
            if markup.startswith(("<!", "<?", "</"), start):
                position = _after(markup, ">", start + 1, missing)
            else:
                parts.append("<")
                position = start + 1
            continue
        tag = name.group()
        position = _after(markup, ">", name.end(), missing)
        if _BREAK.match(tag):
            parts.append("\n\n")
        elif tag[1:].lower() in _SKIPPED:
            closing = f"</{tag[1:].lower()}"
            found = folded.find(closing, position) if closing not in missing else -1
            if found < 0:
                missing.add(closing)
            else:
                position = found
    return re.sub(r"[ \t]+", " ", html.unescape("".join(parts)))


def _after(markup: str, end: str, start: int, missing: set[str]) -> int:
    """The place after the next ``end``; ``start`` if there is none, which is found out only once."""
    found = markup.find(end, start) if end not in missing else -1
    if found < 0:
        missing.add(end)
        return start
    return found + len(end)


def _ascii_lower(markup: str) -> str:
    """Lower case of A to Z alone, so that every place in the text stays where it is."""
    return markup.translate({code: code + 32 for code in range(ord("A"), ord("Z") + 1)})
