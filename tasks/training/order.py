"""Which rows a step takes: a pure function, so that resuming needs only the step's number."""

from __future__ import annotations

import functools

import numpy as np


def batch_at(step: int, *, rows: int, batch: int, seed: int) -> list[int]:
    """The indices of the ``batch`` rows of step 0, 1, … out of ``rows``.

    The steps read one endless stream of epochs, each a permutation of its own, seeded by (seed, epoch).
    """
    first = step * batch
    places = range(first, first + batch)
    return [int(_permutation(rows, seed, place // rows)[place % rows]) for place in places]


def seed_of(seed: int, *place: int) -> int:
    """A seed for one place (a stream's number, a step, …) under a run's seed; 63 bits."""
    return int(np.random.SeedSequence((seed, *place)).generate_state(1, np.uint64)[0] >> 1)


@functools.lru_cache(maxsize=4)
def _permutation(rows: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.Generator(np.random.PCG64((seed, epoch))).permutation(rows)
