"""Writing systems: the letters of a text by script, and which languages each script can be.

Source: Unicode Standard Annex 24 (Script property), by blocks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

LATIN, HAN, KANA, HANGUL = "Latin", "Han", "Kana", "Hangul"


@dataclass(frozen=True)
class Script:
    """A script: its letters as a regular-expression class, its languages, how much one letter says.

    One Chinese character stands for about three letters of an alphabet, a kana or a Hangul syllable for two.
    The first language is taken where there is no other.
    """

    letters: str
    languages: tuple[str, ...]
    weight: int = 1


def _codes(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


_MARKS = "\u0300-\u036f"

SCRIPTS = {
    LATIN: Script(f"A-Za-zªºÀ-ÖØ-öø-ɏɐ-ʯḀ-ỿ{_MARKS}", ()),
    HAN: Script("々〇㐀-䶿一-鿿\uf900-\ufaff\U00020000-\U0003134f", ("zh",), 3),
    KANA: Script("ぁ-ゖゝゞァ-ヺーヽヾㇰ-ㇿｦ-ﾟ", ("ja",), 2),
    HANGUL: Script("ᄀ-ᇿㄱ-ㆎ가-힣", ("ko",), 2),
    "Cyrillic": Script(
        f"Ѐ-ԯ{_MARKS}",
        _codes("ru uk be bg sr mk kk ky mn tg tt ba cv os ce sah tyv myv mhr mrj kv xal av rue bxr krc"),
    ),
    "Greek": Script("Ͱ-Ͽἀ-῿", ("el",)),
    "Hebrew": Script("א-ת", ("he", "yi")),
    "Arabic": Script("ء-ۓە-ۿݐ-ݿﭐ-ﷻﹰ-ﻼ", _codes("ar fa ur ps ug sd ckb azb arz pnb mzn ku")),
    "Devanagari": Script("ऀ-ॿ", _codes("hi mr ne sa mai bh new gom dty")),
    "Bengali": Script("ঀ-৿", ("bn", "as", "bpy")),
    "Gurmukhi": Script("਀-੿", ("pa",)),
    "Gujarati": Script("઀-૿", ("gu",)),
    "Oriya": Script("଀-୿", ("or",)),
    "Tamil": Script("஀-௿", ("ta",)),
    "Telugu": Script("ఀ-౿", ("te",)),
    "Kannada": Script("ಀ-೿", ("kn",)),
    "Malayalam": Script("ഀ-ൿ", ("ml",)),
    "Sinhala": Script("඀-෿", ("si",)),
    "Thai": Script("ก-๎", ("th",)),
    "Lao": Script("ກ-໿", ("lo",)),
    "Tibetan": Script("ཀ-࿿", ("bo",)),
    "Myanmar": Script("က-႟", ("my",)),
    "Georgian": Script("Ⴀ-ჿ", ("ka",)),
    "Armenian": Script("Ա-և", ("hy",)),
    "Ethiopic": Script("ሀ-፼", ("am",)),
    "Khmer": Script("ក-៹", ("km",)),
}
"""Name → script. A text in a script that is not here is undetermined."""

_NAMES = tuple(SCRIPTS)
_NOT_LATIN = re.compile("[^\\x00-\u036f\u1e00-\u1eff\u2000-\u2bff]")
_RUN = re.compile("|".join(f"([{script.letters}]+)" for script in SCRIPTS.values()))


def only_latin(text: str) -> bool:
    """Whether a text has no letter of another script (quick; false for some symbols too)."""
    return text.isascii() or not _NOT_LATIN.search(text)


def runs_by_script(text: str) -> dict[str, list[str]]:
    """The runs of letters of a text by script, in their order."""
    found: dict[str, list[str]] = defaultdict(list)
    for run in _RUN.finditer(text):
        found[_NAMES[(run.lastindex or 1) - 1]].append(run.group())
    return found
