"""Numbers of payment cards (ISO/IEC 7812)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks.corpus.pii.context import EDGE, stands_near, words
from tasks.corpus.pii.numbers import Stretch, matches


def find_card_numbers(text: str, stretches: list[Stretch]) -> Iterator[tuple[int, int]]:
    """Numbers with an issuer's prefix and length and the check digit of Luhn.

    Printed in the groups of its issuer, a number is taken as it stands. A bare run of digits may be an order,
    a time in microseconds or a part of a hash: it needs a word for cards near it.
    """
    for pattern, needs_word in ((_GROUPED, False), (_BARE, True)):
        for number in matches(pattern, text, stretches):
            digits = re.sub(r"[ -]", "", number[0])
            if not (_ISSUED.fullmatch(digits) and luhn_valid(digits) and len(set(digits)) > 1):
                continue
            if not needs_word or stands_near(_CARD_WORDS, text, *number.span(), before=60, after=30):
                yield number.span()


def luhn_valid(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812-1, annex B)."""
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (doubled + sum(int(digit) for digit in digits[-1::-2])) % 10 == 0


_START = rf"(?<![{EDGE}+#])(?<![0-9\x00][ ./:\-])(?<![A-Za-z]-)"
_END = rf"(?![{EDGE}]|[ ./:\-][0-9\x00])"
# 4-4-4-4 with up to three digits more, 4-6-5 of American Express, 4-6-4 of Diners Club.
_GROUPED = re.compile(
    rf"{_START}(?:[2-8][0-9]{{3}}([ -])[0-9]{{4}}\1[0-9]{{4}}\1[0-9]{{4}}(?:\1[0-9]{{3}})?|3[0-9]{{3}}([ "
    rf"-])[0-9]{{6}}\2[0-9]{{4,5}}){_END}"
)
_BARE = re.compile(rf"{_START}[2-8][0-9]{{12,18}}{_END}")

_ISSUED = re.compile(
    r"4[0-9]{12}(?:[0-9]{3}){0,2}"  # Visa
    r"|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"  # Mastercard
    r"|3[47][0-9]{13}"  # American Express
    r"|3(?:0[0-5]|[689][0-9])[0-9]{11}"  # Diners Club
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12}"  # JCB
    r"|(?:6011|64[4-9][0-9]|65[0-9]{2})[0-9]{12}"  # Discover
    r"|62[0-9]{14,17}"  # UnionPay
    r"|220[0-4][0-9]{12}"  # Mir
    r"|(?:60|8[12])[0-9]{14}"  # RuPay
)

_CARD_WORDS = words(
    r"(?:credit|debit|bank|payment)[ _-]?card", r"card(?![a-z])", r"cards?[ _-]?(?:no|num)", r"cardnumber",
    "visa", "master ?card",
    "amex", "american express", "maestro", "unionpay", "jcb(?![a-z])", "discover card", "diners",
    r"cc(?:[ _-]?(?:no|num)|:|#)",
    r"pan(?![a-z])", r"cv[vc]2?(?![a-z])", "kreditkarte", "kartennummer", "karte(?![a-z])", "carte",
    "tarjeta", "carta di credito",
    "cartão", "cartao", "karta", "karty", "karcie", "kaart", "карт[аыеу]", "银行卡", "信用卡", "卡号", "卡號",
    "カード",
    "카드",
)  # fmt: skip
