"""Country codes and how many digits follow them (ITU-T E.164 and its national numbering plans)."""

from __future__ import annotations

import re


def international_length(digits: str) -> bool:
    """Whether digits, country code first and without a plus, are as many as that country's numbers have."""
    for width in (1, 2, 3):
        bounds = _LENGTHS.get(digits[:width])
        if bounds is not None:
            national = digits[width:]
            fits = bounds[0] <= len(national) <= bounds[1]
            return fits and (width > 1 or digits[0] != "1" or _NANP.fullmatch(national) is not None)
    return False


def is_country_code(digits: str) -> bool:
    """Whether these digits are a country code, no more and no less."""
    return digits in _LENGTHS


_NANP = re.compile("[2-9][0-8][0-9][2-9][0-9]{6}")

_USUAL = {
    "1": (10, 10), "7": (10, 10), "20": (8, 10), "27": (9, 9), "30": (10, 10), "31": (9, 9), "32": (8, 9),
    "33": (9, 9),
    "34": (9, 9), "36": (8, 9), "39": (6, 11), "40": (9, 9), "41": (9, 9), "43": (6, 13), "44": (9, 10),
    "45": (8, 8),
    "46": (7, 10), "47": (8, 8), "48": (9, 9), "49": (6, 13), "52": (10, 11), "54": (10, 11), "55": (10, 11),
    "61": (9, 9),
    "62": (8, 12), "81": (9, 10), "82": (8, 10), "86": (10, 11), "91": (10, 10), "351": (9, 9), "852": (8,
    8), "886": (8, 9),
}  # fmt: skip
_OTHERS_OF_TWO = "51 53 56 57 58 60 63 64 65 66 84 90 92 93 94 95 98"
_OTHERS_OF_THREE = "21 22 23 24 25 26 29 35 37 38 42 50 59 67 68 69 80 85 87 88 96 97 99"
_LENGTHS = (
    dict.fromkeys(_OTHERS_OF_TWO.split(), (7, 12))
    | {prefix + last: (6, 12) for prefix in _OTHERS_OF_THREE.split() for last in "0123456789"}
    | _USUAL
)
