"""The checks that national numbers carry: each takes the letters and digits alone, in upper case."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from tasks.corpus.pii.cards import luhn_valid


def ssn(number: str) -> bool:
    """US: areas, groups and serials that are given out (SSA, randomised since 2011)."""
    return (
        number[:3] not in ("000", "666") and number[0] != "9" and number[3:5] != "00" and number[5:] != "0000"
    )


def nino(number: str) -> bool:
    """GB: prefixes that HMRC does not use."""
    return number[:2] not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ")


def spanish(number: str) -> bool:
    """ES: DNI and NIE, the letter is the number modulo 23."""
    digits = number[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23] == number[-1]


_ODD_PLACES = dict(
    zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12,
        14, 16, 10, 22, 25, 24, 23),
        strict=True)
)  # fmt: skip


def codice_fiscale(number: str) -> bool:
    """IT: decree of 23 December 1976; letters at odd places weigh by a table, at even ones by rank."""
    odd = sum(_ODD_PLACES[sign] for sign in number[:15:2])
    even = sum(int(sign) if sign.isdigit() else ord(sign) - 65 for sign in number[1:15:2])
    return chr(65 + (odd + even) % 26) == number[15]


def french_nir(number: str) -> bool:
    """FR: the key is 97 minus the number modulo 97; 2A and 2B (Corsica) count as 19 and 18."""
    month = int(number[3:5])
    if not (1 <= month <= 12 or 20 <= month <= 42 or month >= 50):
        return False
    department = {"2A": "19", "2B": "18"}.get(number[5:7], number[5:7])
    return 97 - int(number[:5] + department + number[7:13]) % 97 == int(number[13:])


def german_tax(number: str) -> bool:
    """DE: ISO 7064 MOD 11,10; of the first ten digits one stands there twice or three times."""
    counts = sorted((number[:10].count(digit) for digit in set(number[:10])), reverse=True)
    if counts[0] not in (2, 3) or counts[1] != 1:
        return False
    product = 10
    for digit in number[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(number[10])


def pesel(number: str) -> bool:
    """PL: weights 1 3 7 9; the month tells the century."""
    century = {0: 1900, 1: 2000, 2: 2100, 3: 2200, 4: 1800}[int(number[2]) // 2]
    return _is_date(century + int(number[:2]), int(number[2:4]) % 20, int(number[4:6])) and -_weighted(
        number[:10], (1, 3, 7, 9) * 3
    ) % 10 == int(number[10])


def cpf(number: str) -> bool:
    """BR, persons: two digits modulo 11 over falling weights."""
    return len(set(number)) > 1 and all(
        _modulo_11(number[:place], range(place + 1, 1, -1)) == int(number[place]) for place in (9, 10)
    )


def cnpj(number: str) -> bool:
    """BR, firms: two digits modulo 11 over the weights 9 to 2, repeated from the right."""
    weights = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    return len(set(number)) > 1 and all(
        _modulo_11(number[:place], weights[13 - place :]) == int(number[place]) for place in (12, 13)
    )


def chinese_resident(number: str) -> bool:
    """CN: GB 11643-1999, a date of birth and ISO 7064 MOD 11-2."""
    if not _is_date(int(number[6:10]), int(number[10:12]), int(number[12:14])):
        return False
    total = _weighted(number[:17], [2 ** (17 - place) % 11 for place in range(17)])
    return "10X98765432"[total % 11] == number[17]


def bsn(number: str) -> bool:
    """NL: the eleven test, the last digit weighs -1."""
    return int(number) > 0 and _weighted(number, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def swedish(number: str) -> bool:
    """SE: a date (days of coordination numbers are 60 higher) and Luhn over ten digits."""
    if len(number) not in (10, 12):
        return False
    number = number[-10:]
    day = int(number[4:6])
    return _is_date(2000 + int(number[:2]), int(number[2:4]), day - 60 if day > 60 else day) and luhn_valid(
        number
    )


def belgian(number: str) -> bool:
    """BE: 97 minus the number modulo 97, with a 2 in front for those born since 2000."""
    return int(number[9:]) in (97 - int(century + number[:9]) % 97 for century in ("", "2"))


def finnish(number: str) -> bool:
    """FI: a date and the number modulo 31. The century's sign may be a hyphen, which is no digit, or an A."""
    digits, sign = number[:6] + number[-4:-1], number[-1]
    return (
        _is_date(2000 + int(digits[4:6]), int(digits[2:4]), int(digits[:2]))
        and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(digits) % 31] == sign
    )


def korean(number: str) -> bool:
    """KR: a date and weights 2 to 9, 2 to 5 (numbers given out before October 2020)."""
    total = _weighted(number[:12], (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5))
    return _is_date(2000 + int(number[:2]), int(number[2:4]), int(number[4:6])) and (
        11 - total % 11
    ) % 10 == int(number[12])


def canadian(number: str) -> bool:
    """CA: Luhn."""
    return luhn_valid(number)


def aadhaar(number: str) -> bool:
    """IN: Verhoeff's check of the dihedral group of order ten."""
    state = 0
    for place, digit in enumerate(reversed(number)):
        permuted = int(digit)
        for _ in range(place % 8):
            permuted = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)[permuted]
        state = _dihedral(state, permuted)
    return state == 0


def japanese(number: str) -> bool:
    """JP: weights 6 to 2, 7 to 2, modulo 11."""
    rest = _weighted(number[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest <= 1 else 11 - rest) == int(number[11])


def portuguese(number: str) -> bool:
    """PT: weights 9 to 2, modulo 11."""
    return _modulo_11(number[:8], range(9, 1, -1)) == int(number[8])


def czech(number: str) -> bool:
    """CZ, SK: a date (women's months are 50 higher, or 20 more when numbers ran out), divisible by 11."""
    return (
        _is_date(2000 + int(number[:2]), int(number[2:4]) % 50 % 20, int(number[4:6]))
        and int(number) % 11 == 0
    )


def _weighted(digits: str, weights: Iterable[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _modulo_11(digits: str, weights: Iterable[int]) -> int:
    rest = _weighted(digits, weights) % 11
    return 0 if rest < 2 else 11 - rest


def _dihedral(a: int, b: int) -> int:
    if a < 5:
        return (a + b) % 5 if b < 5 else 5 + (a + b - 5) % 5
    return 5 + (a - 5 - b) % 5 if b < 5 else (a - b) % 5


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True
