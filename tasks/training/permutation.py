"""A permutation that is never written down: any of its values can be asked for directly."""

from __future__ import annotations

import hashlib

import numpy as np

ROUNDS = 6


def permute(positions: np.ndarray, size: int, key: tuple[int, ...]) -> np.ndarray:
    """The values, at ``positions`` (int64), of the permutation of 0 … size - 1 that ``key`` chooses.

    A Feistel network on the smallest even number of bits that holds ``size`` (Luby and Rackoff 1988), and
    cycle walking for what falls outside (Black and Rogaway 2002, Ciphers with Arbitrary Finite Domains,
    section 3). Memory is that of ``positions``, whatever the size.
    """
    half = max((size - 1).bit_length() + 1, 2) // 2
    keys = [_round_key(key, number) for number in range(ROUNDS)]
    values = _encrypt(positions.astype(np.uint64), half, keys)
    while (outside := values >= size).any():
        values[outside] = _encrypt(values[outside], half, keys)
    return values.astype(np.int64)


def _encrypt(values: np.ndarray, half: int, keys: list[np.uint64]) -> np.ndarray:
    bits, mask = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = values >> bits, values & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right ^ key) & mask)
    return (left << bits) | right


def _mixed(values: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014); uint64 arithmetic wraps around."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _round_key(key: tuple[int, ...], number: int) -> np.uint64:
    digest = hashlib.blake2b(repr((*key, number)).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))
