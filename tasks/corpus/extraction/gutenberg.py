"""What Project Gutenberg puts around and into its books."""

from __future__ import annotations

import re

MAX_FRAME = 60_000
"""Characters of a header or licence; what is longer is not taken for one (they have about 20,000)."""

_START = re.compile(
    r"^[ \t]{0,8}(?:"
    r"\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG[^\n]{0,200}(?:\n[^\n*]{0,200}){0,3}?\*{3}"
    r"|\*{3} ?START OF (?:THE|THIS) PROJECT GUTENBERG[^\n]{0,200}"
    r"|\*END ?\*? ?THE SMALL PRINT![^\n]{0,200}"
    r")[ \t]{0,99}$",
    re.MULTILINE | re.IGNORECASE,
)
_END = re.compile(
    r"^[ \t]{0,8}(?:\*{3} ?END OF (?:THE|THIS) PROJECT GUTENBERG"
    r"|\*{0,3} ?End of (?:the |this )?Project Gutenberg(?:'s|’s)? )[^\n]{0,300}$",
    re.MULTILINE | re.IGNORECASE,
)
_INSERTED = re.compile(r"<<\s{0,9}THIS ELECTRONIC VERSION OF THE COMPLETE WORKS[^<>]{0,2000}>>")
_CREDITS = re.compile(
    r"\s{0,20}(?:\[?(?:Produced by|E-?text prepared by|This e-?text was (?:prepared|produced|scanned) by|"
    r"Transcribed (?:from|by)|Scanned by|HTML version by)[^\n]{0,300}(?:\n[^\n]{1,300}){0,6})\n\n",
    re.IGNORECASE,
)


def without_gutenberg_frame(text: str) -> str:
    """The books without header, small print, licence, credits and inserted blurbs; other texts as they are.

    Several books in one file each lose their frame. The wordings are those of 1991 to today: ``*** START OF
    …``, ``*END*THE SMALL PRINT!``, ``End of Project Gutenberg's …``, and the blurb between the works of the
    Complete Shakespeare of 1994.
    """
    if "gutenberg" not in text.lower():
        return text
    text = _INSERTED.sub("", text)
    marks = [(match.start(), match.end(), "start") for match in _START.finditer(text)]
    marks += [(match.start(), match.end(), "end") for match in _END.finditer(text)]
    kept: list[str] = []
    position, before = 0, ""
    for start, end, mark in [*sorted(marks), (len(text), len(text), "")]:
        between = text[position:start]
        if not _is_frame(between, before, mark):
            credits = _CREDITS.match(between) if before == "start" else None
            kept.append(between[credits.end() :] if credits else between)
        position, before = end, mark
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(part.strip("\n") for part in kept)).strip("\n")


def _is_frame(text: str, before: str, after: str) -> bool:
    """Whether what stands between two marks (or a mark and an end of the text) is none of the work."""
    if len(text) > MAX_FRAME:
        return False
    if before == "start":  # a header may have two marks, with the small print between them
        return after == "start" and "gutenberg" in text.lower()
    return after == "start" or before == "end"
