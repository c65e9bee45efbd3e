"""Personal data replaced by placeholders that keep who is who without saying who."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import unicodedata
from collections.abc import Iterable, Sequence

from tasks.corpus.pii.emails import canonical_email
from tasks.corpus.pii.find import KINDS, Found
from tasks.corpus.pii.phones import canonical_phone


def mask(text: str, found: Sequence[Found], key: bytes = b"") -> str:
    """The text with each find as ``<kind-tag>``; the tag depends on kind, value and key alone.

    So the same value has the same placeholder in every document, on every machine. The tag has 32 bits of
    keyed BLAKE2b (RFC 7693). Without a key whoever guesses a value can confirm it; with a secret one (at most
    64 bytes) nobody can who lacks it.

    Raises:
        ValueError: finds overlap or are out of order or out of the text, or the key is too long.
    """
    if len(key) > hashlib.blake2b.MAX_KEY_SIZE:
        raise ValueError(f"the key has {len(key)} bytes; at most {hashlib.blake2b.MAX_KEY_SIZE} are possible")
    pieces, position = [], 0
    for each in found:
        if not position <= each.start < each.end <= len(text):
            raise ValueError(
                f"{each.kind} at {each.start}-{each.end}: finds must be in order, apart, and in the text"
            )
        value = canonical(each.kind, text[each.start : each.end])
        pieces += (text[position : each.start], f"<{each.kind}-{_tag(each.kind, value, key)}>")
        position = each.end
    return "".join([*pieces, text[position:]])


def count(found: Iterable[Found]) -> dict[str, int]:
    """How many finds there are of each kind; every kind is there."""
    counts: dict[str, int] = dict.fromkeys(KINDS, 0)
    for each in found:
        counts[each.kind] += 1
    return counts


def canonical(kind: str, value: str) -> str:
    """A value without the accidents of its writing: case of an address, blanks of a number."""
    if kind == "secret":
        return value
    value = unicodedata.normalize("NFKC", value)
    if kind == "email":
        return canonical_email(value)
    if kind == "phone":
        return canonical_phone(value)
    if kind == "ip":
        return str(ipaddress.ip_address(value))
    return re.sub(r"[\W_]+", "", value).upper()


def _tag(kind: str, value: str, key: bytes) -> str:
    digest = hashlib.blake2b(
        value.encode("utf-8", "surrogatepass"), digest_size=4, key=key, person=kind.encode()
    )
    return digest.hexdigest()
