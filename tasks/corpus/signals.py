"""Measurements of a text, taken once; rules decide on them later (`tasks.corpus.policy`).

After Rae et al., Scaling Language Models (Gopher), 2021, appendix A1.1, and Penedo et al., FineWeb, 2024.
"""

from __future__ import annotations

import re
from collections import Counter

_WORD = re.compile(r"\w+(?:['’]\w+)*")
# Scripts that put no space between words: Han, kana, Thai, Lao, Khmer, Myanmar. Each character is a word.
UNSEGMENTED = re.compile(r"[぀-ヿ㐀-䶿一-鿿豈-﫿\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_STOP_WORDS = frozenset(("the", "be", "to", "of", "and", "that", "have", "with"))
_BULLETS = ("-", "*", "•", "‣", "·", "◦")
_TERMINAL = (".", "!", "?", '"', "”", "。", "！", "？", "…", "’", "»")


def words(text: str) -> list[str]:
    """The words of a text; a character of a script without spaces is a word of its own."""
    if not UNSEGMENTED.search(text):
        return _WORD.findall(text)
    found: list[str] = []
    for word in _WORD.findall(text):
        if UNSEGMENTED.search(word):
            rest = UNSEGMENTED.sub(" ", word).split()
            found.extend(UNSEGMENTED.findall(word))
            found.extend(rest)
        else:
            found.append(word)
    return found


def measure(text: str) -> dict[str, float]:
    """All signals of a text, each a share of words, lines or characters unless the name says otherwise."""
    tokens = words(text)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    count = max(1, len(tokens))
    line_count = max(1, len(lines))
    characters = max(1, sum(map(len, lines)))
    repeated = [line for line, times in Counter(lines).items() for _ in range(times - 1)]
    signals = {
        "characters": len(text),
        "words": len(tokens),
        "lines": len(lines),
        "mean_word_length": sum(map(len, tokens)) / count,
        "symbol_to_word_ratio": (text.count("#") + text.count("…") + text.count("...")) / count,
        "alphabetic_word_share": sum(map(_has_letter, tokens)) / count,
        "unsegmented_word_share": _unsegmented(tokens) / count,
        "stop_words": len(_STOP_WORDS & {token.lower() for token in set(tokens)}),
        "bullet_line_share": sum(line.startswith(_BULLETS) for line in lines) / line_count,
        "ellipsis_line_share": sum(line.endswith(("...", "…")) for line in lines) / line_count,
        "terminal_line_share": sum(line.endswith(_TERMINAL) for line in lines) / line_count,
        "duplicate_line_share": len(repeated) / line_count,
        "duplicate_line_character_share": sum(map(len, repeated)) / characters,
    }
    return {name: round(float(value), 6) for name, value in signals.items()}


def _has_letter(token: str) -> bool:
    return token.isalpha() or any(map(str.isalpha, token))


def _unsegmented(tokens: list[str]) -> int:
    return sum(len(token) == 1 and UNSEGMENTED.match(token) is not None for token in tokens)
