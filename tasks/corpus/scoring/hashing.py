"""Hashes of 64 bits and the hash table of the compiled loops.

Within a loop everything is np.uint64: numba makes a float of an unsigned and a signed integer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tasks.compiled import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_LOW, _HIGH = np.uint64(29), np.uint64(32)

START = np.uint64(0x243F6A8885A308D3)
"""What a hash begins with."""


class HashTable(NamedTuple):
    """An open-addressing table. A slot is free if its stamp is another: counting it up empties the table."""

    keys: np.ndarray
    stamps: np.ndarray
    counts: np.ndarray
    firsts: np.ndarray


@compiled()
def hash_table(items):
    """A table that can take ``items``; stamps begin at 1."""
    size = capacity_for(items)
    return HashTable(
        np.empty(size, np.uint64),
        np.zeros(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )


@compiled()
def capacity_for(items):
    """The smallest power of two that is at least twice ``items``."""
    capacity = 16
    while capacity < 2 * items:
        capacity *= 2
    return capacity


@compiled(inline="always")
def extended(hashed, item):
    """The hash of a sequence and one item more (both uint64)."""
    hashed = (hashed ^ item) * _GOLDEN
    return (hashed ^ (hashed >> _HIGH)) * _MIX ^ (hashed >> _LOW)


@compiled(inline="always")
def appended(polynomial, item):
    """A polynomial of one item more (both uint64): a third of the time of `extended`, and to be `mixed`."""
    return polynomial * _GOLDEN + item


@compiled(inline="always")
def dropped(polynomial, item, power):
    """A polynomial without its first item; ``power`` is that of the items behind it (see `power_of`)."""
    return polynomial - item * power


@compiled()
def power_of(items):
    """What the first item of a polynomial is multiplied by, if so many stand behind it."""
    power = np.uint64(1)
    for _ in range(items):
        power *= _GOLDEN
    return power


@compiled(inline="always")
def mixed(polynomial):
    """The hash that a polynomial becomes: all of its bits depend on all."""
    hashed = (polynomial ^ (polynomial >> _HIGH)) * _MIX
    return hashed ^ (hashed >> _LOW)


@compiled()
def hash_of(chars, start, stop):
    """The hash of ``chars[start:stop]``."""
    hashed = START
    for i in range(start, stop):
        hashed = extended(hashed, np.uint64(chars[i]))
    return hashed


@compiled(inline="always")
def slot_of(hashed, table, stamp, mask):
    """Where ``hashed`` lies, or would lie.

    ``mask`` is the capacity in use, a power of two, less one; at most half of it may be filled.
    """
    slot = np.int64((hashed ^ (hashed >> _HIGH)) & np.uint64(mask))
    while table.stamps[slot] == stamp and table.keys[slot] != hashed:
        slot = (slot + 1) & mask
    return slot


@compiled(inline="always")
def seen_before(hashed, table, stamp, mask):
    """Put ``hashed`` into the table; returns whether it was there."""
    slot = slot_of(hashed, table, stamp, mask)
    if table.stamps[slot] == stamp:
        return True
    table.keys[slot], table.stamps[slot] = hashed, stamp
    return False
