"""Published policies by name, each a list of rules and what it does to lines.

Gopher: Rae et al. 2021, appendix A1.1 and table A1, with the numbers of datatrove. C4: Raffel et al. 2020, as
released in TFDS, and as datatrove has it. FineWeb: Penedo et al. 2024; its code allows 1 % of characters in
repeated lines (appendix E.4), its body 10 %.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tasks.corpus.policies.rules import Rule

PresetName = Literal["gopher", "c4_tfds", "c4_datatrove", "fineweb_code", "fineweb_paper", "multilingual"]


@dataclass(frozen=True)
class Preset:
    """A policy: its rules, in the order in which they speak, and the line rule that edits what is kept."""

    rules: tuple[Rule, ...]
    line_rule: str | None = None


def _at_most(name: str, signal: str, maximum: float, **scope: Any) -> Rule:
    return Rule(name=name, signal=signal, maximum=maximum, **scope)


def _at_least(name: str, signal: str, minimum: float, **scope: Any) -> Rule:
    return Rule(name=name, signal=signal, minimum=minimum, **scope)


def _repetition(**scope: Any) -> tuple[Rule, ...]:
    pieces = {"duplicate_paragraph_share": 0.30, "duplicate_paragraph_character_share": 0.20,
              "duplicate_line_share": 0.30, "duplicate_line_character_share": 0.20}  # fmt: skip
    top = {2: 0.20, 3: 0.18, 4: 0.16}
    repeated = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.10}
    bounds = {
        **pieces,
        **{f"top_{n}_gram_character_share": share for n, share in top.items()},
        **{f"duplicate_{n}_gram_character_share": share for n, share in repeated.items()},
    }
    return tuple(_at_most(f"gopher_{signal}", signal, share, **scope) for signal, share in bounds.items())


def _quality(**scope: Any) -> tuple[Rule, ...]:
    return (
        Rule(name="gopher_words", signal="words", minimum=50, maximum=100_000),
        Rule(name="gopher_word_length", signal="mean_word_length", minimum=3, maximum=10, **scope),
        _at_most("gopher_hashes", "hash_to_word_ratio", 0.1, **scope),
        _at_most("gopher_ellipses", "ellipsis_to_word_ratio", 0.1, **scope),
        _at_most("gopher_bullet_lines", "bullet_line_share", 0.9, **scope),
        _at_most("gopher_ellipsis_lines", "ellipsis_line_share", 0.3, **scope),
        _at_least("gopher_alphabetic_words", "alphabetic_word_share", 0.8, **scope),
        _at_least("gopher_stop_words", "stop_words", 2, **scope),
    )


def _c4(line_rule: str, sentences: int) -> tuple[Rule, ...]:
    return (
        _at_most("c4_lorem_ipsum", f"{line_rule}_lorem_ipsum", 0),
        _at_most("c4_curly_bracket", f"{line_rule}_curly_bracket", 0),
        _at_least("c4_sentences", f"{line_rule}_sentences", sentences),
    )


def _fineweb(repeated: float) -> Preset:
    lines = "c4_fineweb"
    rules = (
        _at_least("language_score", "language_score", 0.65),
        *_repetition(),
        *_quality(),
        *_c4(lines, 5),
        _at_least("fineweb_lines", f"{lines}_lines", 1),
        _at_least("fineweb_terminal_lines", f"{lines}_terminal_line_share", 0.12),
        _at_most("fineweb_short_lines", f"{lines}_short_line_share", 0.67),
        _at_most("fineweb_repeated_line_characters", f"{lines}_repeated_line_character_share", repeated),
        _at_most("fineweb_newlines", f"{lines}_newline_to_word_ratio", 0.3),
    )
    return Preset(rules, lines)


# Scripts whose words are single characters: a word is short, and an n-gram of words says less.
_UNSEGMENTED = ["zh", "ja", "th", "lo", "km", "my", "yue", "wuu"]


def _multilingual() -> Preset:
    """Gopher's rules where they fit several languages, and on what is no prose only those that fit it too.

    Punctuation counts among the segments of which Gopher wants 80 % with a letter: verse with its many commas
    falls below, so here it is 60 %.
    """
    prose: dict[str, Any] = {"except_kinds": ["code"]}
    relaxed: dict[str, Any] = {"except_kinds": ["code", "reference"]}
    other = ("gopher_word_length", "gopher_alphabetic_words")
    quality = [rule for rule in _quality(**prose) if rule.name not in other]
    return Preset(
        (
            *quality,
            _at_least("gopher_alphabetic_words", "alphabetic_word_share", 0.6, **prose),
            Rule(name="gopher_alphabetic_words", minimum=0.5, only_kinds=["reference"]),
            Rule(name="gopher_word_length", signal="mean_word_length", minimum=2, maximum=12, **prose),
            Rule(name="gopher_word_length", minimum=1, maximum=12, only_languages=_UNSEGMENTED),
            _at_least("language_score", "language_score", 0.3, **prose),
            *(rule for rule in _repetition(**relaxed) if "gram" not in rule.name),
            *(
                rule.model_copy(update={"except_languages": _UNSEGMENTED})
                for rule in _repetition(**relaxed)
                if "gram" in rule.name
            ),
        )
    )


PRESETS: dict[str, Preset] = {
    "gopher": Preset((*_repetition(), *_quality())),
    "c4_tfds": Preset(_c4("c4_tfds", 3), "c4_tfds"),
    "c4_datatrove": Preset(_c4("c4_datatrove", 5), "c4_datatrove"),
    "fineweb_code": _fineweb(0.01),
    "fineweb_paper": _fineweb(0.1),
    "multilingual": _multilingual(),
}
"""Every preset by its name."""
