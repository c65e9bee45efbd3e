from __future__ import annotations

import numpy as np
import pytest

from tasks.corpus.deduplication.verification import bounded_runs


@pytest.mark.parametrize(
    ("sizes", "runs"),
    [
        ([3, 3, 3, 3], [(0, 3), (3, 4)]),
        ([4, 9, 2], [(0, 1), (1, 2), (2, 3)]),
        ([4, 9, 1], [(0, 1), (1, 3)]),
        ([99, 99, 1], [(0, 1), (1, 2), (2, 3)]),
        ([10, 0, 0, 1], [(0, 3), (3, 4)]),
        ([], []),
    ],
    ids=["several", "bounded", "just-fits", "too-large", "empty-documents", "none"],
)
def test_pairs_are_compared_in_runs_of_bounded_size(sizes: list[int], runs: list[tuple[int, int]]) -> None:
    assert list(bounded_runs(np.array(sizes, np.int64), 10)) == runs
