"""The random number generators of a process, as something that a checkpoint can hold."""

from __future__ import annotations

import random
from typing import Any, cast

import numpy as np
import torch


def seeded(seed: int) -> dict[str, Any]:
    """Seed all three generators; return the state that they are in then."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    return random_state()


def random_state() -> dict[str, Any]:
    """The states of Python's, NumPy's and PyTorch's generators, in types that load without pickled code."""
    kind, keys, position, has_gauss, cached = cast("tuple[Any, ...]", np.random.get_state(legacy=True))
    return {
        "python": random.getstate(),
        "numpy": [kind, torch.from_numpy(keys.astype(np.int64)), position, has_gauss, cached],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_random_state(state: dict[str, Any]) -> None:
    """Bring the generators into a state that `random_state` returned."""
    kind, keys, position, has_gauss, cached = state["numpy"]
    random.setstate(state["python"])
    np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, cached))
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
