"""Inline markup of reStructuredText."""

from __future__ import annotations

import re

_INLINE = re.compile(
    r"``(?P<literal>(?:[^`\n]|`(?!`)){1,500})``"
    r"|(?::(?P<role>[A-Za-z][\w:.+-]{0,40}):)?`(?P<text>[^`]{1,500})`(?P<reference>__?)?(?::[a-z]{1,20}:)?"
    r"|\*\*(?P<strong>[^*\s](?:[^*\n]{0,300}[^*\s])?)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^*\s](?:[^*\n]{0,300}[^*\s])?)\*(?![\w*])"
    r"|\|(?P<substitution>[^|\s](?:[^|\n]{0,60}[^|\s])?)\|_{0,2}"
    r"|\[(?P<footnote>[#*]?[\w.-]{0,40})\]_(?!\w)"
    r"|_`(?P<target>[^`\n]{1,200})`"
    r"|(?<![\w`])(?P<word>[A-Za-z0-9]{1,60}(?:[-.+:][A-Za-z0-9]{1,60}){0,9})__?(?!\w)"
    r"|\\(?P<escaped>[\s\S])"
)
_TITLE_AND_TARGET = re.compile(r"(?s)(.{1,400}?)\s{0,9}(?<!\\)<[^<>]{1,400}>$")
_PREFIXES = {"pep": "PEP ", "rfc": "RFC ", "issue": "bpo-", "gh": "gh-"}
_DROPPED_ROLES = frozenset({"index", "raw"})


def inline_text(text: str, substitutions: dict[str, str]) -> str:
    """The text without roles, references, emphasis and escapes; literals as they stand."""
    if not any(mark in text for mark in "`*|_\\"):
        return text

    def plain(match: re.Match[str]) -> str:
        kind = match.lastgroup
        if match["literal"] is not None:
            return match["literal"]
        if match["text"] is not None:
            return _interpreted(match["role"] or "", match["text"])
        if match["escaped"] is not None:
            return "" if match["escaped"].isspace() else match["escaped"]
        if match["substitution"] is not None:
            return substitutions.get(match["substitution"], match["substitution"])
        if match["footnote"] is not None:
            name = match["footnote"].lstrip("#*")
            return f"[{name}]" if name else ""
        return match[kind or 0]

    return _INLINE.sub(plain, text)


def _interpreted(role: str, text: str) -> str:
    role = role.rpartition(":")[2].lower()
    if role in _DROPPED_ROLES:
        return ""
    titled = _TITLE_AND_TARGET.match(text) if text.endswith(">") else None
    if titled is not None:
        return re.sub(r"\s+", " ", titled.group(1)).strip()
    text = re.sub(r"\\(.)", r"\1", re.sub(r"\s+", " ", text)).strip()
    if text.startswith("!"):
        return text[1:]
    if text.startswith("~"):
        return text.rpartition(".")[2].lstrip("~")
    return _PREFIXES.get(role, "") + text
