from __future__ import annotations

import numpy as np

from tasks.corpus.deduplication.candidates import bucket_pairs


def pairs(keys: list[int], ranks: list[int], all_pairs_up_to: int) -> set[tuple[int, int]]:
    numbers = np.stack([np.zeros(len(keys), np.uint64), np.arange(len(keys), dtype=np.uint64)], axis=1)
    one, other = bucket_pairs(np.array(keys), np.array(ranks), numbers, all_pairs_up_to)
    found = [tuple(sorted(pair)) for pair in zip(one.tolist(), other.tolist(), strict=True)]
    assert len(set(found)) == len(found)
    return set(found)


def test_a_small_bucket_gives_all_pairs_and_one_document_none() -> None:
    assert pairs([7, 3, 7, 9, 7], [0] * 5, 16) == {(0, 2), (0, 4), (2, 4)}


def test_a_large_bucket_is_a_star_around_its_best() -> None:
    assert pairs([5] * 6, [-1, -1, -3, -3, -2, -1], 5) == {(0, 2), (1, 2), (2, 3), (2, 4), (2, 5)}


def test_buckets_of_both_sizes_side_by_side() -> None:
    keys = [1] * 4 + [2] * 3 + [3]
    assert pairs(keys, [0] * 8, 3) == {(0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (5, 6)}


def test_no_rows_are_no_pairs() -> None:
    assert pairs([], [], 16) == set()
