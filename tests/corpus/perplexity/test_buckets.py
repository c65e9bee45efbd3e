from __future__ import annotations

import math

import numpy as np
import pytest

from tasks.corpus.perplexity.buckets import bins, buckets, cutoffs, histogram, perplexity_of


def split(perplexities, languages=None, quantiles=(1 / 3, 2 / 3)):
    given = np.array(perplexities, dtype=float)
    names = languages or ["en"] * len(given)
    return buckets(given, names, cutoffs(histogram(given, names), quantiles))


def test_each_language_is_split_into_even_thirds_by_its_own_perplexities():
    perplexities = np.random.default_rng(0).lognormal(5, 1, 3000)
    languages = ["en" if n % 3 else "de" for n in range(3000)]
    perplexities[::3] *= 40
    found = split(perplexities, languages)
    for language in ("en", "de"):
        mine = [(p, b) for p, b, name in zip(perplexities, found, languages, strict=True) if name == language]
        for bucket in ("head", "middle", "tail"):
            assert sum(b == bucket for _, b in mine) == pytest.approx(len(mine) / 3, abs=20)
        order = [b for _, b in sorted(mine)]
        assert order == sorted(order, key=("head", "middle", "tail").index)


@pytest.mark.parametrize(
    ("perplexities", "expected"),
    [
        ([10, 20, 30], ["head", "middle", "tail"]),
        ([30, 10, 20, 60, 40, 50], ["middle", "head", "head", "tail", "middle", "tail"]),
        ([10, 20], ["head", "middle"]),
        ([10], ["head"]),
        ([], []),
        ([7, 7, 7], ["head", "head", "head"]),
    ],
)
def test_a_bucket_ends_where_its_share_is_reached(perplexities, expected):
    assert split(perplexities) == expected


def test_quantiles_may_be_other_than_thirds():
    assert split(range(10, 110, 10), quantiles=(0.3, 0.6)) == ["head"] * 3 + ["middle"] * 3 + ["tail"] * 4


@pytest.mark.parametrize("quantiles", [(0.6, 0.3), (0.5, 0.5), (0.0, 0.5), (0.5, 1.0), (math.nan, 0.5)])
def test_quantiles_that_do_not_ascend_are_refused(quantiles):
    with pytest.raises(ValueError, match="ascend between 0 and 1"):
        cutoffs({("en", 3): 1}, quantiles)


def test_documents_without_perplexity_or_language_are_in_no_bucket_and_move_no_cutoff():
    assert split([10, math.nan, 20, 30, 5, 1], ["en", "en", "en", "en", None, None]) == [
        "head", None, "middle", "tail", None, None,
    ]  # fmt: skip


def test_a_language_without_cutoffs_is_in_no_bucket():
    assert buckets(np.array([10.0]), ["fr"], {"en": (1, 2)}) == [None]


def test_histograms_of_parts_add_up_whatever_the_parts():
    perplexities = np.random.default_rng(1).lognormal(5, 2, 500)
    languages = ["en", "de", "fr", None, "en"] * 100
    whole = histogram(perplexities, languages)
    parts = histogram(perplexities[:123], languages[:123]) + histogram(perplexities[123:], languages[123:])
    assert parts == whole
    assert cutoffs(dict(reversed(whole.items()))) == cutoffs(whole)


@pytest.mark.parametrize(
    ("perplexity", "expected"), [(1.0, 0), (0.5, 0), (0.0, 0), (math.exp(0.015), 1), (math.nan, -1)]
)
def test_a_bin_is_a_hundredth_of_a_nat(perplexity, expected):
    assert bins(np.array([perplexity])) == [expected]


def test_an_infinite_perplexity_is_in_the_last_bin():
    assert bins(np.array([math.inf])) == bins(np.array([np.finfo(float).max]))


def test_a_cutoff_can_be_shown_as_a_perplexity():
    assert perplexity_of(int(bins(np.array([250.0]))[0])) == pytest.approx(250, rel=0.01)
