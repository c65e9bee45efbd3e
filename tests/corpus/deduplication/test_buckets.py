from __future__ import annotations

import itertools

import numpy as np
import pytest

from tasks.corpus.deduplication.buckets import bucket_pairs, key_ranges


def pairs(keys: list[int], all_pairs_up_to: int, earlier: int = 0) -> set[tuple[int, int]]:
    """The pairs of documents 0, 1, … with these keys, of which the first are the better ones."""
    order = np.argsort(np.array(keys, np.uint64), kind="stable")
    found = bucket_pairs(np.array(keys, np.uint64)[order], order, earlier, all_pairs_up_to).tolist()
    assert found == sorted(found)
    assert len({tuple(pair) for pair in found}) == len(found)
    return {(one, other) for one, other in found}


def test_a_small_bucket_gives_all_pairs_and_one_document_none() -> None:
    assert pairs([7, 3, 7, 9, 7], 16) == {(0, 2), (0, 4), (2, 4)}


def test_a_large_bucket_is_a_star_around_its_best() -> None:
    assert pairs([5] * 6, 5) == {(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)}


def test_buckets_of_both_sizes_side_by_side() -> None:
    assert pairs([1] * 4 + [2] * 3 + [3], 3) == {(0, 1), (0, 2), (0, 3), (4, 5), (4, 6), (5, 6)}


@pytest.mark.parametrize("all_pairs_up_to", [2, 16])
def test_documents_of_an_earlier_index_are_not_compared_again(all_pairs_up_to: int) -> None:
    assert pairs([1] * 4, all_pairs_up_to, earlier=4) == set()
    expected = {(0, 3)} if all_pairs_up_to == 2 else {(0, 3), (1, 3), (2, 3)}
    assert pairs([1] * 4, all_pairs_up_to, earlier=3) == expected


def test_a_pair_that_shares_several_keys_is_there_once() -> None:
    keys = np.array([1, 1, 2, 2, 3, 3], np.uint64)
    found = bucket_pairs(keys, np.array([4, 9, 9, 4, 4, 9]), 0, 16)
    assert found.tolist() == [[4, 9]]


def test_no_rows_are_no_pairs() -> None:
    assert pairs([], 16) == set()


@pytest.mark.parametrize(("keys", "cores"), [(0, 4), (3_000_000, 2), (50_000_000, 2)])
def test_ranges_of_keys_are_all_keys_once(keys: int, cores: int) -> None:
    ranges = key_ranges(keys, cores)
    assert ranges[0].first == 0
    assert ranges[-1].last == 2**64 - 1
    assert all(one.last + 1 == two.first for one, two in itertools.pairwise(ranges))
