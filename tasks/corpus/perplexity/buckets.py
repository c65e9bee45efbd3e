"""Head, middle and tail: documents by the quantiles of perplexity within their language.

Wenzek et al., CCNet: Extracting High Quality Monolingual Datasets from Web Crawl Data, 2020, splits each
language into three even parts; its released code cuts at the 30th and the 60th percentile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

BIN = 0.01
"""Width of a bin in nats: cutoffs are exact to 1 % of a perplexity."""

BUCKETS = ("head", "middle", "tail")

Histogram = Counter[tuple[str, int]]
"""Documents for each language and bin. Sums of parts are the whole's, whatever the parts."""


def bins(perplexities_D: np.ndarray) -> np.ndarray:
    """The bin of each document's ln perplexity, bins_D; −1 for NaN. All of 1 and below share bin 0.

    Infinite perplexities share the last bin there is.
    """
    logs_D = np.log(np.clip(np.nan_to_num(perplexities_D, nan=1.0), 1.0, np.finfo(np.float64).max))
    return np.where(np.isnan(perplexities_D), -1, np.floor(logs_D / BIN)).astype(np.int64)


def histogram(perplexities_D: np.ndarray, languages: Sequence[str | None]) -> Histogram:
    """How many documents fall into each bin of each language; those without language or perplexity none."""
    return Counter(
        (language, number)
        for language, number in zip(languages, bins(perplexities_D).tolist(), strict=True)
        if language is not None and number >= 0
    )


def cutoffs(
    counts: Mapping[tuple[str, int], int], quantiles: tuple[float, float] = (1 / 3, 2 / 3)
) -> dict[str, tuple[int, int]]:
    """The last bin of head and the last of middle, for each language.

    The smallest that leave at least these shares of the language's documents at or below them, so that
    documents of one bin stay together.

    Raises:
        ValueError: if the quantiles do not ascend between 0 and 1.
    """
    head, middle = quantiles
    if not 0 < head < middle < 1:
        raise ValueError(f"quantiles {head} and {middle}: they must ascend between 0 and 1")
    found = {}
    for language in sorted({language for language, _ in counts}):
        ordered = sorted((number, count) for (name, number), count in counts.items() if name == language)
        below = np.array(list(accumulate(count for _, count in ordered)))
        # The tolerance keeps a third of 3 documents one document, though 1/3 is not exact in binary.
        first, second = np.searchsorted(below, np.array([head, middle]) * below[-1] - 1e-9)
        found[language] = (ordered[first][0], ordered[second][0])
    return found


def buckets(
    perplexities_D: np.ndarray, languages: Sequence[str | None], cuts: Mapping[str, tuple[int, int]]
) -> list[str | None]:
    """``head``, ``middle`` or ``tail`` for each document; None without perplexity, language or cutoffs."""
    found: list[str | None] = []
    for language, number in zip(languages, bins(perplexities_D).tolist(), strict=True):
        cut = cuts.get(language) if language is not None else None
        if cut is None or number < 0:
            found.append(None)
        else:
            found.append(BUCKETS[(number > cut[0]) + (number > cut[1])])
    return found


def perplexity_of(cut: int) -> float:
    """The perplexity at which a bin ends, to show a cutoff by."""
    return float(np.exp((cut + 1) * BIN))
