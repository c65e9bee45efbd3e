"""Where personal data stands in a text, and of which kind it is."""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tasks.corpus.pii.addresses import find_ip_addresses
from tasks.corpus.pii.bank_accounts import find_ibans
from tasks.corpus.pii.cards import find_card_numbers
from tasks.corpus.pii.context import GAP
from tasks.corpus.pii.emails import find_emails
from tasks.corpus.pii.national_ids import find_national_ids
from tasks.corpus.pii.numbers import number_stretches
from tasks.corpus.pii.phones import find_phone_numbers
from tasks.corpus.pii.secrets import find_secrets

KINDS: tuple[str, ...] = ("email", "phone", "ip", "card", "iban", "national_id", "secret")

PLACEHOLDER = re.compile(rf"<(?:{'|'.join(KINDS)})-[0-9a-f]{{6,16}}>")
"""What stands where personal data stood; the earlier form with six digits is one too."""


@dataclass(frozen=True)
class Found:
    """Personal data at characters ``start`` to ``end`` (exclusive)."""

    kind: str
    start: int
    end: int


def find_personal_data(text: str, kinds: Collection[str] = KINDS) -> list[Found]:
    """Personal data of the given kinds, in order of position, without overlaps.

    Where two overlap, the one stands whose form leaves least to chance: secret, e-mail, IBAN, card, national
    id, IP, phone. The search is repeated with the finds blanked out, so that a masked text has nothing left
    to find.

    Raises:
        ValueError: a kind that there is none of.
    """
    if unknown := set(kinds) - set(KINDS):
        raise ValueError(
            f"no kind of personal data: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}"
        )
    canvas = PLACEHOLDER.sub(lambda placeholder: GAP * len(placeholder[0]), _plain(text))
    found: list[Found] = []
    for _ in range(_ROUNDS):
        new = _without_overlaps(_candidates(canvas, kinds), len(canvas))
        if not new:
            break
        found += new
        canvas = _blanked(canvas, new)
    return sorted(found, key=lambda each: each.start)


# A find that gives way to another may leave a remainder that is one itself: a second round settles nearly
# everything, the bound keeps hostile text linear.
_ROUNDS = 4

_PLAIN_FORMS = {
    **dict.fromkeys("\u00a0\u2007\u202f\u3000", " "),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **{chr(0xFEE0 + ord(plain)): plain for plain in "0123456789+-.@()/" + string.ascii_letters},
}
_TYPOGRAPHIC = re.compile(f"[{''.join(_PLAIN_FORMS)}]")


def _plain(text: str) -> str:
    """The text with full-width forms, hard blanks and dashes as ASCII has them, character for character."""
    return text if text.isascii() else _TYPOGRAPHIC.sub(lambda sign: _PLAIN_FORMS[sign[0]], text)


def _candidates(canvas: str, kinds: Collection[str]) -> Iterator[Found]:
    stretches = number_stretches(canvas)
    detectors: dict[str, Iterable[tuple[int, int]]] = {
        "secret": find_secrets(canvas),
        "email": find_emails(canvas),
        "iban": find_ibans(canvas, stretches) if stretches else (),
        "card": find_card_numbers(canvas, stretches) if stretches else (),
        "national_id": find_national_ids(canvas, stretches) if stretches else (),
        "ip": find_ip_addresses(canvas),
        "phone": find_phone_numbers(canvas, stretches) if stretches else (),
    }  # the first to name a character has it
    for kind, spans in detectors.items():
        if kind in kinds:
            for start, end in spans:
                yield Found(kind, start, end)


def _without_overlaps(candidates: Iterator[Found], length: int) -> list[Found]:
    """Those that overlap none before them in the order given, in a text of that length."""
    taken: bytearray | None = None
    chosen = []
    for each in candidates:
        taken = taken or bytearray(length)
        if not any(taken[each.start : each.end]):
            taken[each.start : each.end] = b"\1" * (each.end - each.start)
            chosen.append(each)
    return chosen


def _blanked(canvas: str, found: list[Found]) -> str:
    pieces, position = [], 0
    for each in sorted(found, key=lambda each: each.start):
        pieces += (canvas[position : each.start], GAP * (each.end - each.start))
        position = each.end
    return "".join([*pieces, canvas[position:]])
