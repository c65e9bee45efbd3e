"""International bank account numbers (ISO 13616)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks.corpus.pii.context import EDGE
from tasks.corpus.pii.numbers import Stretch, matches


def find_ibans(text: str, stretches: list[Stretch]) -> Iterator[tuple[int, int]]:
    """IBANs, in one piece or in groups of four: country, its structure and the check of ISO 7064 (mod 97)."""
    for candidate in matches(_CANDIDATE, text, stretches):
        structure = _STRUCTURES.get(candidate[0][:2])
        if structure is None:
            continue
        account = structure.printed.match(text, candidate.end())
        if account is None:
            continue
        compact = candidate[0] + re.sub("[ -]", "", account[0])
        if structure.compact.fullmatch(compact[2:]) and _remainder(compact) == 1:
            yield candidate.start(), account.end()


class _Structure:
    """What follows the country: check digits and account, by the IBAN registry's letters."""

    def __init__(self, registry: str) -> None:
        parts = re.findall(r"(\d+)([nac])", "2n" + registry)
        classes = {"n": "[0-9]", "a": "[A-Z]", "c": "[A-Z0-9]"}
        self.compact = re.compile("".join(f"{classes[letter]}{{{size}}}" for size, letter in parts))
        groups, rest = divmod(sum(int(size) for size, _ in parts) - 2, 4)
        last = f"[ -]?[A-Z0-9]{{{rest}}}" if rest else ""
        self.printed = re.compile(rf"(?:[ -]?[A-Z0-9]{{4}}){{{groups}}}{last}(?![{EDGE}])")


# SWIFT, IBAN Registry: the structure of the account number after the check digits.
_REGISTRY = """
AD:8n12c AE:19n AL:8n16c AT:16n AZ:4a20c BA:16n BE:12n BG:4a6n8c BH:4a14c BR:23n1a1c BY:4c4n16c CH:5n12c
CR:18n CY:8n16c CZ:20n DE:18n DK:14n DO:4c20n EE:16n EG:25n ES:20n FI:14n FO:14n FR:10n11c2n GB:4a14n GE:2a16n
GI:4a15c GL:14n GR:7n16c GT:4c20c HR:17n HU:24n IE:4a14n IL:19n IQ:4a15n IS:22n IT:1a10n12c JO:4a4n18c
KW:4a22c KZ:3n13c LB:4n20c LC:4a24c LI:5n12c LT:16n LU:3n13c LV:4a13c LY:21n MC:10n11c2n MD:2c18c ME:18n
MK:3n10c2n MR:23n MT:4a5n18c MU:4a19n3a NL:4a10n NO:11n PK:4a16c PL:24n PS:4a21c PT:21n QA:4a21c RO:4a16c
RS:18n SA:2n18c SC:4a20n3a SE:20n SI:15n SK:20n SM:1a10n12c ST:21n SV:4a20n TL:19n TN:20n TR:6n16c UA:6n19c
VA:18n VG:4a16n XK:16n
"""
_STRUCTURES = {entry[:2]: _Structure(entry[3:]) for entry in _REGISTRY.split()}

_CANDIDATE = re.compile(rf"(?<![{EDGE}])[A-Z]{{2}}[0-9]{{2}}(?=[ -]?[A-Z0-9]{{4}})")


def _remainder(compact: str) -> int:
    return int("".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])) % 97
