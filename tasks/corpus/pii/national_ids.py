"""Numbers that states give to persons (and two that tax offices give to firms)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tasks.corpus.pii import check_digits as check
from tasks.corpus.pii.context import EDGE, stands_near, words
from tasks.corpus.pii.numbers import Stretch, matches


def find_national_ids(text: str, stretches: list[Stretch]) -> Iterator[tuple[int, int]]:
    """Numbers in a form of `FORMS` whose check holds, with a word for it near where form and check are
    weak."""
    for form in FORMS:
        for number in matches(form.pattern, text, stretches):
            start, end = number.span()
            if form.cues is not None and not stands_near(form.cues, text, start, end, before=60, after=30):
                continue
            if form.check(re.sub(r"[^0-9A-Za-z]", "", number[0]).upper()):
                yield start, end


@dataclass(frozen=True)
class Form:
    """How a number is written, how it is checked, and the words without which it is not believed."""

    name: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    cues: re.Pattern[str] | None = None


def _alone(pattern: str) -> re.Pattern[str]:
    """Not touching letters or digits, nor a further group of digits."""
    return re.compile(
        rf"(?<![{EDGE}+])(?<![{EDGE}]-)(?<![0-9\x00][ ./])(?:{pattern})(?![{EDGE}]|[./\-][{EDGE}]| [0-9\x00])"
    )


_TAX = ("tax(?:payer)? id", r"tin(?![a-z])")

FORMS = (
    # Form and check leave little to chance.
    Form("IT codice fiscale",
         _alone("[A-Z]{6}[0-9LMNP-V]{2}[A-EHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]"),
         check.codice_fiscale),
    Form("CN resident identity number", _alone("[1-8][0-9]{5}(?:18|19|20)[0-9]{9}[0-9Xx]"),
    check.chinese_resident),
    Form("FR NIR", _alone(r"[1278](?: ?[0-9]{2}){2} ?(?:[0-9]{2}|2[AB])(?: ?[0-9]{3}){2} ?[0-9]{2}"),
    check.french_nir),
    Form("BR CPF", _alone(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}"), check.cpf),
    Form("BR CNPJ", _alone(r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}"), check.cnpj),
    Form("BE rijksregisternummer", _alone(r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}"), check.belgian),
    Form("FI henkilötunnus", _alone("[0-3][0-9][01][0-9]{3}[-+A][0-9]{3}[0-9A-FHJ-NPR-Y]"), check.finnish),
    Form("KR resident registration number", _alone("[0-9]{2}[01][0-9][0-3][0-9]-[1-8][0-9]{6}"),
    check.korean),
    Form("GB NINO", _alone("[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: [0-9]{2}){3} [A-D]"), check.nino),
    # These need a word.
    Form("GB NINO", _alone("[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][0-9]{6}[A-D]"), check.nino,
         words("nino(?![a-z])", "national insurance", r"ni (?:no|num)")),
    Form("US SSN", _alone(r"[0-8][0-9]{2}([- ])[0-9]{2}\1[0-9]{4}|[0-8][0-9]{8}"), check.ssn,
         words("ssn", "social[ _-]?security", "ss#", *_TAX)),
    Form("ES DNI", _alone("[0-9]{8}[ -]?[A-HJ-NP-TV-Z]"), check.spanish,
         words("dni(?![a-z])", "d[.]n[.]i", "nif(?![a-z])", "documento", "identidad", "identificaci")),
    Form("ES NIE", _alone("[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]"), check.spanish,
         words("nie(?![a-z])", "n[.]i[.]e", "nif(?![a-z])", "documento", "extranjero", "identidad",
         "identificaci")),
    Form("DE Steuer-Identifikationsnummer", _alone("[1-9][0-9]{10}|[1-9][0-9](?: [0-9]{3}){3}"),
    check.german_tax,
         words("steuer", "idnr", "identifikationsnummer", *_TAX)),
    Form("PL PESEL", _alone("[0-9]{11}"), check.pesel, words("pesel")),
    Form("BR CPF", _alone("[0-9]{11}"), check.cpf, words("cpf")),
    Form("BR CNPJ", _alone("[0-9]{14}"), check.cnpj, words("cnpj")),
    Form("NL burgerservicenummer", _alone(r"[0-9]{9}|[0-9]{4}([. ])[0-9]{2}\1[0-9]{3}|[0-9]{3}([. "
    r"])[0-9]{3}\2[0-9]{3}"), check.bsn,
         words("bsn", "burgerservice", "sofi")),
    Form("SE personnummer", _alone("(?:19|20)?[0-9]{6}[-+]?[0-9]{4}"), check.swedish,
         words("person ?n", "person-?n", "pnr(?![a-z])", "samordning", "personal identity")),
    Form("CA SIN", _alone(r"[1-79][0-9]{2}([- ])[0-9]{3}\1[0-9]{3}|[1-79][0-9]{8}"), check.canadian,
         words("sin(?= ?(?:no|num|is|#|:))", "social insurance", "assurance sociale", r"nas(?= ?:)")),
    Form("IN Aadhaar", _alone(r"[2-9][0-9]{3}([ -]?)[0-9]{4}\1[0-9]{4}"), check.aadhaar, words("aadhaa?r",
    "uidai", "आधार")),
    Form("JP My Number", _alone(r"[0-9]{4}([ -]?)[0-9]{4}\1[0-9]{4}"), check.japanese, words("my ?number",
    "マイナンバー", "個人番号")),
    Form("PT NIF", _alone(r"[1-3][0-9]{2}( ?)[0-9]{3}\1[0-9]{3}"), check.portuguese,
         words("nif(?![a-z])", "contribuinte", "identificação fiscal")),
    Form("CZ rodné číslo", _alone("[0-9]{6}/[0-9]{4}"), check.czech, words("rodn", "r[.]č")),
)  # fmt: skip
"""Each form by the public description of the authority that gives it out."""
