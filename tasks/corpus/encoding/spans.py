"""The characters that tokens of a text stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Encoding


def token_spans(
    tokens: Sequence[int], text: str, encoding: Encoding, ids_T: np.ndarray, bytes_V: np.ndarray | None
) -> list[tuple[int, int]] | None:
    """First character and the one behind the last, of each of some tokens of a text.

    A token that is a piece of a character stands for the whole of it. By counting bytes if ``bytes_V`` tells
    how many every id stands for, else from the library's ``encoding``. None if the bytes of the tokens are
    not those of the text, which something has changed before it was encoded.
    """
    if bytes_V is None:
        return [encoding.token_to_chars(token) or (0, 0) for token in tokens]
    ends_T = np.cumsum(bytes_V[ids_T])
    raw = text.encode("utf-8")
    if ends_T[-1] != len(raw):
        return None
    starts_T = ends_T - bytes_V[ids_T]
    if len(raw) == len(text):
        return [(int(starts_T[token]), int(ends_T[token])) for token in tokens]
    # Characters that begin up to each byte: the one that holds byte b is number begun_N[b] - 1.
    begun_N = np.cumsum((np.frombuffer(raw, np.uint8) & 0xC0) != 0x80)
    return [(int(begun_N[starts_T[token]]) - 1, int(begun_N[ends_T[token] - 1])) for token in tokens]
