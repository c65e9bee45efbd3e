"""How the C library hands out the memory of tensors on the CPU."""

from __future__ import annotations

import ctypes

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> bool:
    """Make glibc keep the memory of freed tensors for the next ones; tell whether it did.

    By default a big tensor is a new mapping: the kernel clears its pages when it is made and takes them back
    when it is freed, which in a small network costs more than the arithmetic. The results do not change. Call
    it before the first big tensor; other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = {_M_MMAP_MAX: 0, _M_TRIM_THRESHOLD: 2**31 - 1, _M_TOP_PAD: 2**26}
    return all(mallopt(name, value) == 1 for name, value in settings.items())
