"""Mending of mojibake: UTF-8 that was once read as another encoding."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ftfy import TextFixerConfig

MAX_PIECE = 10_000
"""Characters that are mended together: bounds the time that one endless line takes."""

_WINDOWS_1252 = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_WINDOWS_1251 = "ЂЃ‚ѓ„…†‡€‰Љ‹ЊЌЋЏђ‘’“”•–—™љ›њќћџ\u00a0ЎўЈ¤Ґ¦§Ё©Є«¬\u00ad®Ї°±Ііґµ¶·ё№є»јЅѕї"
_SEQUENCES = (
    f"[\u00c2-\u00df][{_WINDOWS_1252}]|[\u00e0-\u00ef][{_WINDOWS_1252}]{{2}}|[\u00f0-\u00f4][{_WINDOWS_1252}]{{3}}"
    f"|(?:[РС][{_WINDOWS_1251}]){{2}}"
    "|‚Ä[ôòúùìîñ¶]|√[©®¢†°§∂∏±]|ΓÇ[ÖÿöÜ£¥]"
)
"""Lead bytes with their continuation bytes, as windows-1252 (or ISO-8859-1), windows-1251, Mac Roman and code
page 437 show them. Rare in proper text, and quick to search."""

_EVIDENCE = re.compile(_SEQUENCES + "|[\u0080-\u009f]")
"""C1 controls too: no text has them of its own."""

_QUOTED = re.compile(f"[\"'`“‘„«](?:{_SEQUENCES})[\"'`”’“»]")
"""A single damaged character in quotation marks: the line speaks of mojibake, and is right as it is."""


def mend_mojibake(text: str) -> str:
    """The text with the lines mended by ftfy (Speer, 2019) in which there is evidence of mojibake.

    Nothing else of ftfy's is on: quotes stay curly, full-width characters full, ligatures and entities as
    they are.
    """
    if text.isascii() or _EVIDENCE.search(text) is None:
        return text
    import ftfy

    lines = text.split("\n")
    for index, line in enumerate(lines):
        if not line.isascii() and _EVIDENCE.search(line) is not None and _QUOTED.search(line) is None:
            lines[index] = ftfy.fix_text(line, _config())
    return "\n".join(lines)


@cache
def _config() -> TextFixerConfig:
    from ftfy import TextFixerConfig

    return TextFixerConfig(
        unescape_html=False,
        remove_terminal_escapes=False,
        fix_latin_ligatures=False,
        fix_character_width=False,
        uncurl_quotes=False,
        fix_line_breaks=False,
        fix_surrogates=False,
        remove_control_chars=False,
        normalization=None,
        max_decode_length=MAX_PIECE,
    )
