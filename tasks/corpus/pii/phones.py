"""Telephone numbers: international, in the national forms of many countries, and bare ones beside a word for
them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks.corpus.pii.context import EDGE, following, preceding, stands_near, words
from tasks.corpus.pii.dialling import international_length, is_country_code
from tasks.corpus.pii.numbers import Stretch, matches


def find_phone_numbers(text: str, stretches: list[Stretch]) -> Iterator[tuple[int, int]]:
    """International numbers (E.164), national ones in an unmistakable form, others after a word for them.

    In this order, as the first of two that overlap is taken.
    """
    for number in matches(_INTERNATIONAL, text, stretches):
        end = _international_end(text, number)
        if end is not None and not _is_other_number(text, number.start(), end):
            yield number.start(), end
    for number in matches(_NATIONAL, text, stretches):
        if 8 < len(_digits(number[0])) < 13 and not _is_other_number(text, *number.span()):
            yield number.span()
    for number in matches(_CHINESE_MOBILE, text, stretches):
        around = preceding(text, number.start(), 12) + following(text, number.end(), 12)
        if _HAN.search(around) and not _is_other_number(text, *number.span()):
            yield number.span()
    for number in matches(_ANY, text, stretches):
        start, end = number.start(), number.end()
        if stands_near(_PHONE_WORDS, text, start, end, before=28) and _may_be_phone(text, start, end):
            yield start, end


def canonical_phone(value: str) -> str:
    """The digits, without a trunk zero in parentheses and without the zeros dialled for abroad."""
    digits = _digits(value.replace("(0)", ""))
    return digits[2:] if digits.startswith("00") else digits


def _digits(value: str) -> str:
    return re.sub("[^0-9]", "", value)


_BREAK = r"(?:[ .\-/]|\)[ \-/]?| ?\(| / | - )"
_AFTER = rf"(?![{EDGE}]|[.,:/\-][0-9\x00])"

_INTERNATIONAL = re.compile(
    rf"(?<![{EDGE}+.)])(?:\(?\+ ?|(?<![0-9\x00] )00 ?(?=[1-9][0-9]{{0,2}}[ \-(/]))(?P<number>[1-9]"
    rf"(?:{_BREAK}?[0-9]){{6,17}}+){_AFTER}"
)

_TWO = "[0-9]{2}"
_FORMS = (
    # North America: area and exchange begin with 2 to 9 and are no service code (NANP).
    r"(?:\+?1[ .\-])?\([2-9][0-8][0-9]\) ?[2-9][0-9]{2}[\-. ][0-9]{4}",
    r"(?:1[.\-])?[2-9][0-8][0-9]([.\-])[2-9][0-9]{2}\1[0-9]{4}",
    # A trunk zero and an area in parentheses: Germany, United Kingdom, Australia, Taiwan, China, Japan.
    r"\(0[1-9][0-9]{0,4}\) ?[0-9]{3,8}(?:[ \-][0-9]{2,5}){0,2}",
    # France and Belgium; Switzerland.
    rf"0[1-9]([ .\-]){_TWO}(?:\2{_TWO}){{3}}",
    rf"0[0-9]{{2}} [0-9]{{3}} {_TWO} {_TWO}",
    # United Kingdom, Ireland, Australia.
    "0(?:20 [0-9]{4} [0-9]{4}|1[0-9]1 [0-9]{3} [0-9]{4}|[17][0-9]{3} [0-9]{3} ?[0-9]{3}|4[0-9]{2} "
    "[0-9]{3} [0-9]{3}|8[0-9] [0-9]{3} [0-9]{4})",
    # Germany, Austria, Netherlands, Italy: area, stroke or hyphen, number.
    r"0[1-9][0-9]{1,3} ?/ ?[0-9]{5,8}(?:-[0-9]{1,3})?|0[1-9][0-9]{1,3}-[0-9]{6,8}|01[567][0-9] [0-9]{7,8}"
    r"|06[ \-][0-9]{8}",
    # Japan, Korea, Taiwan.
    "02-[0-9]{3}-[0-9]{4}|0(?=(?:-?[0-9]){9,10}(?![0-9]))[1-9][0-9]{0,3}-[0-9]{2,4}-[0-9]{3,4}",
    # Sweden.
    f"0[1-9][0-9]{{0,2}}-[0-9]{{2,3}} {_TWO} {_TWO}",
    # Russia and its neighbours.
    rf"8[ \-]?\([3489][0-9]{{2}}\) ?[0-9]{{3}}[ \-]{_TWO}[ \-]{_TWO}|8[ \-][3489][0-9]{{2}}[ "
    rf"\-][0-9]{{3}}[ \-]{_TWO}[ \-]{_TWO}",
    rf"\([3489][0-9]{{2}}\) ?[0-9]{{3}}-{_TWO}-{_TWO}",
    # Brazil.
    r"\([1-9][1-9]\) ?9? ?[0-9]{4}[\- ][0-9]{4}|[1-9][1-9] 9[0-9]{4}-[0-9]{4}",
    # China.
    r"1[3-9][0-9]([ \-])[0-9]{4}\3[0-9]{4}",
    # Spain, Poland.
    rf"[679][0-9]{{2}} {_TWO} {_TWO} {_TWO}|[1-9][0-9] [0-9]{{3}} {_TWO} {_TWO}",
)
_NATIONAL = re.compile(
    rf"(?<![{EDGE}+.])(?<![{EDGE}][\-/.])(?<![0-9\x00] )(?:{'|'.join(_FORMS)}){_AFTER}(?! [0-9\x00])"
)
_CHINESE_MOBILE = re.compile(rf"(?<![{EDGE}+.])(?<![{EDGE}][\-/])1[3-9][0-9]{{9}}{_AFTER}")
_HAN = re.compile("[\u3400-\u9fff]")

_ANY = re.compile(rf"(?<![{EDGE}+.])(?<![{EDGE}][\-/.])\(?[0-9](?:{_BREAK}?[0-9]){{5,12}}+{_AFTER}")

_PHONE_WORDS = words(
    r"tel(?:e?ph?one?|\.|:)?(?![a-z])", "tel[eé]f[oó]n", "tél", "phone", "mobile", r"mobil(?![a-z])",
    "cell(?:ular|phone)?(?![a-z])", r"fax(?![a-z])",
    "telefax", "handy", "hotline", "whatsapp", "móvil", "movil", "celular", "cellulare", "portable",
    "telemóvel", "telefoon",
    "komórk", "kom[.]", "тел(?:ефон|[.:])", "моб(?:ильн|[.:])", "факс", "звоните", "电话", "電話", "手机",
    "手機",
    "携帯", "传真", "傳真", "热线",
    "致电", "拨打", "联系方式", "전화", "휴대", "팩스", "연락처", "फ़ोन", "फोन", "मोबाइल",
    "call (?:me|us|him|her|them)",
    "sms", "dial", "numéro",
    "contact (?:no|num)", "☎", "📞", "☏",
)  # fmt: skip
_OTHER_WORDS = re.compile(
    r"(?<![^\W\d_])(?:part|serial|order|invoice|ticket|sku|is[bs]n|model|article|catalog(?:ue)?|ref"
    r"|reference|case|doi|lot|batch|account|"
    r"tracking|p/n|s/n|bug|issue|rfc|patent|zip|id|error|code|version|page|pages|pp)(?: ?(?:no|nr|number"
    r"|#))?[.:#]{0,2}[ (]?(?:is )?$"
)
_MONEY = re.compile(r"[$€£¥₹%]|^ ?(?:usd|eur|gbp|dollars|euros?|bytes|[kmg]i?b|元|円)(?![a-z])")
_DATE = re.compile(
    r"(?:19|20)[0-9]{2}([\-./]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{4}|[0-9]{6})?(?![0-9])"
    r"|[0-3]?[0-9]([\-./])[0-3]?[0-9]\2(?:19|20)[0-9]{2}(?![0-9])|(?:1[0-9]|20)[0-9]{2} ?[\-/] ?(?:1[0-9]"
    r"|20)[0-9]{2}$"
)
_ISBN = re.compile(r"97[89][ \-]?[0-9]")


def _international_end(text: str, number: re.Match[str]) -> int | None:
    """Where a number ends that has as many digits as its country's have; groups beyond that are not its
    own."""
    value = number["number"]
    dotted = re.fullmatch(r"[0-9]+\.[0-9]+", value)
    if dotted and not stands_near(_PHONE_WORDS, text, *number.span(), before=28):
        return None  # a decimal number, unless a word says that it is one of RFC 5733
    if text[number.start()] == "0" and not is_country_code(re.split("[^0-9]", value, maxsplit=1)[0]):
        return None
    while True:
        digits = _digits(value.replace("(0)", ""))
        if international_length(digits):
            return number.start("number") + len(value)
        shorter = re.match(r"(.*[0-9])[^0-9]+[0-9]+$", value, re.DOTALL)
        if shorter is None:
            return None
        value = shorter[1]


def _may_be_phone(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    if _DATE.match(value) or re.fullmatch(r"[0-9]+\.[0-9]+", value) or value.count("(") != value.count(")"):
        return False
    return not _is_other_number(text, start, end)


def _is_other_number(text: str, start: int, end: int) -> bool:
    """A price, a date, a book, or a number that a word directly before calls something else."""
    before, after = preceding(text, start, 20).lower(), following(text, end, 8).lower()
    return bool(
        _OTHER_WORDS.search(before)
        or _MONEY.search(before[-2:])
        or _MONEY.match(after)
        or _DATE.match(text[start:end])
        or _ISBN.match(text[start:end])
    )
