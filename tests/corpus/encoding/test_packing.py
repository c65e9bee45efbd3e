from __future__ import annotations

import math

import numpy as np
import pytest

from tasks.corpus.encoding.packing import Packing, pack

SEEDS = range(12)


def lengths(seed: int) -> tuple[np.ndarray, int]:
    """Documents of one kind or another, some empty, some longer than a sequence, many of equal length."""
    generator = np.random.default_rng(seed)
    size = int(generator.choice([1, 2, 7, 16, 63, 64, 65, 257]))
    count = int(generator.integers(1, 400))
    kinds = [
        generator.integers(0, size + 1, count),
        generator.integers(0, 4 * size, count),
        np.exp(generator.normal(math.log(size) - 1, 1.5, count)).astype(np.int64),
        generator.choice([size // 2, size // 3 + 1, size], count),
    ]
    return kinds[seed % 4], size


def pieces(packing: Packing) -> list[tuple[int, int, int, int, int]]:
    """(sequence, position, document, first, tokens)"""
    columns = (
        packing.sequence_P, packing.position_P, packing.document_P, packing.first_P, packing.tokens_P,
    )  # fmt: skip
    return list(zip(*(column.tolist() for column in columns), strict=True))


def slow(lengths_D: list[int], size: int) -> list[tuple[int, int, int, int, int]]:
    """The same by looking through all sequences for each rest."""
    found, sequence = [], 0
    for document, length in enumerate(lengths_D):
        for first in range(0, length - length % size, size):
            found.append((sequence, 0, document, first, size))
            sequence += 1
    rests = [(-(length % size), document) for document, length in enumerate(lengths_D) if length % size]
    used: dict[int, int] = {}
    filled_last: dict[int, int] = {}
    for turn, (negative, document) in enumerate(sorted(rests)):
        fitting = [s for s in used if size - used[s] >= -negative]
        chosen = min(fitting, key=lambda s: (size - used[s], -filled_last[s]), default=sequence + len(used))
        position = used.get(chosen, 0)
        first = lengths_D[document] - lengths_D[document] % size
        found.append((chosen, position, document, first, -negative))
        used[chosen], filled_last[chosen] = position - negative, turn
    return sorted(found)


def first_fit(lengths_D: list[int], size: int) -> int:
    """How many sequences there are if each rest goes into the first that holds it, in their order."""
    rooms: list[int] = []
    for length in lengths_D:
        rest = length % size
        if rest:
            place = next((number for number, room in enumerate(rooms) if room >= rest), None)
            if place is None:
                rooms.append(size - rest)
            else:
                rooms[place] -= rest
    return len(rooms) + sum(length // size for length in lengths_D)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_token_is_in_one_piece(seed: int) -> None:
    lengths_D, size = lengths(seed)
    found = sorted(
        (document, first, tokens) for _, _, document, first, tokens in pieces(pack(lengths_D, size))
    )
    reached: dict[int, int] = {}
    for document, first, tokens in found:
        assert first == reached.get(document, 0), "a gap, or a token twice"
        reached[document] = first + tokens
    assert reached == {document: length for document, length in enumerate(lengths_D.tolist()) if length}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_pieces_of_a_sequence_lie_side_by_side_and_fit(seed: int) -> None:
    lengths_D, size = lengths(seed)
    packing = pack(lengths_D, size)
    reached = [0] * packing.sequences
    for sequence, position, _, _, tokens in pieces(packing):
        assert position == reached[sequence]
        reached[sequence] += tokens
    assert all(0 < used <= size for used in reached)


@pytest.mark.parametrize("seed", SEEDS)
def test_only_what_is_longer_than_a_sequence_is_cut_and_only_at_whole_sequences(seed: int) -> None:
    lengths_D, size = lengths(seed)
    packing = pack(lengths_D, size)
    assert (packing.first_P % size == 0).all()
    counts_D = np.bincount(packing.document_P, minlength=len(lengths_D))
    assert counts_D.tolist() == [-(-length // size) for length in lengths_D.tolist()]


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_what_a_slow_search_finds(seed: int) -> None:
    lengths_D, size = lengths(seed)
    assert pieces(pack(lengths_D, size)) == slow(lengths_D.tolist(), size)


@pytest.mark.parametrize("seed", SEEDS)
def test_there_are_no_more_sequences_than_by_first_fit(seed: int) -> None:
    lengths_D, size = lengths(seed)
    assert pack(lengths_D, size).sequences <= first_fit(lengths_D.tolist(), size)


def test_the_best_fit_is_taken_not_the_first() -> None:
    # 6 and 5 open a sequence each; 4 fits both, and fills the first.
    assert [(d, s) for s, _, d, _, _ in pieces(pack(np.array([4, 5, 6]), 10))] == [(2, 0), (0, 0), (1, 1)]


@pytest.mark.parametrize("given", [[], [0, 0]], ids=["none", "empty"])
def test_no_tokens_need_no_sequence(given: list[int]) -> None:
    packing = pack(np.array(given, np.int64), 8)
    assert (packing.sequences, pieces(packing)) == (0, [])


def test_a_document_of_many_sequences_fills_them_and_leaves_a_rest() -> None:
    packing = pack(np.array([3, 10**6 + 1]), 1000)
    assert packing.sequences == 1001
    assert pieces(packing)[999:] == [(999, 0, 1, 999_000, 1000), (1000, 0, 0, 0, 3), (1000, 3, 1, 10**6, 1)]


@pytest.mark.parametrize(("given", "size"), [([-1], 4), ([1], 0)], ids=["negative", "no room"])
def test_what_is_no_length_is_refused(given: list[int], size: int) -> None:
    with pytest.raises(ValueError, match="lengths must be 0 or more"):
        pack(np.array(given), size)
