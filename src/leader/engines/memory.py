"""How the C library of a worker handles freed memory."""

import ctypes
import os

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # option names in glibc's malloc.h; 2^25 is the largest value of the latter


def keep_freed_memory() -> bool:
    """Makes the C library keep freed memory instead of returning it to the system; False if it is not glibc.

    A network frees and allocates the same megabytes in every layer. Getting them from the kernel each time took a third of a
    worker's time. Not for processes whose peak memory is measured.
    """
    return _tune_malloc(2**25, 2**30)


def return_freed_memory() -> bool:
    """Makes the C library return freed memory to the system at once; False if it is not glibc.

    The peak is then that of the memory in use. By default, malloc's reuse of freed blocks changes it by several per cent
    between runs that differ in a few small tensors.
    """
    return _tune_malloc(2**16, 2**16)


def trim_memory() -> bool:
    """Returns free memory to the system; False if the C library is not glibc or nothing was free."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    return bool(trim is not None and trim(0))


def _tune_malloc(mapped: int, trimmed: int) -> bool:
    """Blocks of at least `mapped` bytes are allocated and returned one by one; the heap is trimmed at `trimmed` free bytes."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:
        return False
    return bool(mallopt(_MMAP_THRESHOLD, mapped) and mallopt(_TRIM_THRESHOLD, trimmed))
