"""How the C library of a worker deals with memory that is freed."""

from __future__ import annotations

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of options in glibc's malloc.h; 2^25 is the largest it takes for the latter


def keep_freed_memory() -> bool:
    """Makes the C library keep what is freed instead of handing it back; False where it is not glibc.

    A network frees and asks for the same megabytes at every layer. Fetching them from the kernel each time took a third of a
    worker's time. Not for processes whose peak memory is measured.
    """
    return _tune_malloc(2**25, 2**30)


def return_freed_memory() -> bool:
    """Makes the C library hand back what is freed at once; False where it is not glibc.

    A peak is then that of what was in use. Left to itself, malloc's reuse of freed blocks moves it by several per cent between
    runs that differ in a few small tensors.
    """
    return _tune_malloc(2**16, 2**16)


def trim_memory() -> bool:
    """Hands back to the system what is free now; False where the C library is not glibc, or nothing was."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    return bool(trim is not None and trim(0))


def _tune_malloc(mapped: int, trimmed: int) -> bool:
    """Blocks from `mapped` bytes on are fetched and returned one by one; the heap's end is returned from `trimmed` bytes on."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, mapped) and mallopt(_TRIM_THRESHOLD, trimmed))
