"""Escape sequences of roff: characters, strings, and what only changes how text looks."""

from __future__ import annotations

import re

MAX_STRING = 1000
"""Characters of a string defined by ``.ds``: strings of strings must not grow without bound."""

FIXED_STRINGS = frozenset({"", "--", "PI", 'L"', 'R"', "C`", "C'"})
"""What Pod::Man defines in a way that only works together with ``.tr``."""

_ESCAPE = re.compile(
    r"\\(?:"
    r"\*(?:\((?P<string2>..)|\[(?P<string>[^\]\n]{0,60})\]|(?P<string1>.))"
    r"|\((?P<character2>[^\s].)"
    r"|\[(?P<character>[^\]\n]{1,60})\]"
    r"|C'(?P<quoted>[^'\n]{1,60})'"
    r"|N'(?P<number>[0-9]{1,7})'"
    r"|[fFmMgkVYn][-+]?(?:\(..|\[[^\]\n]{0,60}\]|.)"
    r"|s(?:[-+]?(?:\[[^\]\n]{0,20}\]|'[^'\n]{0,20}'|\([0-9]{2}|[0-9])|[-+][0-9]{1,2})"
    r"|[hvwlLDXAbBHSRxZo](?P<quote>['\"])[^'\"\n]{0,200}(?P=quote)"
    r"|\$[0-9*@]"
    r"|(?P<other>[\s\S]?)"
    r")"
)
_COMMENT = re.compile(r'(?<!\\)((?:\\\\){0,50})\\["#].*')
_OTHERS = {
    "-": "-", "e": "\\", "\\": "\\", " ": " ", "~": "\u00a0", "0": " ", "t": "\t", "'": "'", "`": "`",
    ".": ".",
    "_": "_", "E": "\\",
}  # fmt: skip
_BASE_STRINGS = {
    "lq": "“", "rq": "”", "R": "®", "Tm": "™", "S": "", "Aq": "'", "``": "“", "''": "”", 'L"': "“", 'R"': "”",
    "C`": "", "C'": "", "--": "—", "PI": "π", "q": '"', "<=": "≤", ">=": "≥", "Lq": "“", "Rq": "”", "Gt": ">",
    "Lt": "<", "Ba": "|", "Am": "&", "Ne": "≠", "Le": "≤", "Ge": "≥", "Pm": "±", "If": "∞", "Na": "NaN",
}  # fmt: skip
_CHARACTERS = {
    "bu": "•", "em": "—", "en": "–", "hy": "-", "co": "©", "rg": "®", "tm": "™", "lq": "“", "rq": "”",
    "oq": "‘",
    "cq": "’", "aq": "'", "dq": '"', "Bq": "„", "bq": "‚", "Fo": "«", "Fc": "»", "fo": "‹", "fc": "›",
    "ga": "`",
    "ha": "^", "ti": "~", "rs": "\\", "bv": "|", "ba": "|", "or": "|", "br": "│", "sl": "/", "at": "@",
    "sh": "#",
    "Do": "$", "Eu": "€", "eu": "€", "Ye": "¥", "Po": "£", "ct": "¢", "de": "°", "+-": "±", "mu": "×",
    "di": "÷",
    "<=": "≤", ">=": "≥", "!=": "≠", "==": "≡", "~~": "≈", "~=": "≅", "->": "→", "<-": "←", "<>": "↔",
    "ua": "↑",
    "da": "↓", "rA": "⇒", "lA": "⇐", "if": "∞", "sr": "√", "pd": "∂", "gr": "∇", "is": "∫", "sc": "§",
    "ps": "¶",
    "dg": "†", "dd": "‡", "fm": "′", "sd": "″", "12": "½", "14": "¼", "34": "¾", "S1": "¹", "S2": "²",
    "S3": "³",
    "ss": "ß", "AE": "Æ", "ae": "æ", "OE": "Œ", "oe": "œ", "-D": "Ð", "Sd": "ð", "TP": "Þ", "Tp": "þ",
    "/O": "Ø",
    "/o": "ø", "/L": "Ł", "/l": "ł", "oA": "Å", "oa": "å", "r?": "¿", "r!": "¡", "la": "⟨", "ra": "⟩",
    "lB": "[",
    "rB": "]", "lC": "{", "rC": "}", "lh": "☜", "rh": "☞", "sq": "□", "ci": "○", "OK": "✓", "no": "¬",
    "mo": "∈",
    "mi": "−", "pl": "+", "eq": "=", "**": "*", "ul": "_", "ru": "_", "rn": "‾", "aa": "´", "Of": "ª",
    "Om": "º",
    ",C": "Ç", ",c": "ç", "nb": "⊄", "sb": "⊂", "sp": "⊃", "fa": "∀", "te": "∃", "AN": "∧", "OR": "∨",
    "pc": "·",
}  # fmt: skip
_ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    ":": "\u0308",
    "~": "\u0303",
    "v": "\u030c",
    "a": "\u0306",
}
_GREEK = dict(zip("abgdezyhiklmncoprstufxqw", "αβγδεζηθικλμνξοπρστυφχψω", strict=True))


def without_comment(line: str) -> str:
    """The line up to ``\\"`` or ``\\#``."""
    return _COMMENT.sub(r"\1", line) if '\\"' in line or "\\#" in line else line


def unescape(text: str, strings: dict[str, str]) -> str:
    """The characters that the escapes mean; fonts, sizes, motions and registers come to nothing."""
    if "\\" not in text:
        return text

    def meaning(match: re.Match[str]) -> str:
        groups = match.groupdict()
        for kind in ("string", "string1", "string2"):
            name = groups[kind]
            if name is not None:
                return strings.get(name, _BASE_STRINGS.get(name, ""))
        for kind in ("character2", "character", "quoted"):
            if groups[kind] is not None:
                return _character(groups[kind])
        if groups["number"] is not None:
            return _code_point(int(groups["number"]))
        return _OTHERS.get(groups["other"] or "", "")

    return _ESCAPE.sub(meaning, text)


def _character(name: str) -> str:
    known = _CHARACTERS.get(name)
    if known is not None:
        return known
    if re.fullmatch(r"u[0-9A-Fa-f]{4,6}(?:_[0-9A-Fa-f]{4,6}){0,9}", name):
        return "".join(_code_point(int(code, 16)) for code in name[1:].split("_"))
    if re.fullmatch(r"char[0-9]{1,3}", name):
        return _code_point(int(name[4:]))
    if len(name) == 2 and name[0] in _ACCENTS and name[1].isalpha():
        return name[1] + _ACCENTS[name[0]]
    if len(name) == 2 and name[0] == "*":
        letter = _GREEK.get(name[1].lower(), "")
        return letter.upper() if name[1].isupper() else letter
    return ""


def _code_point(code: int) -> str:
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
