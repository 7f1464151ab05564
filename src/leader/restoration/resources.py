"""Threads and memory of a restoration; memory is checked before anything large is allocated."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leader.engines.base import limit_threads
from leader.errors import LeaderError, UsageError, no_memory

MOST_THREADS = 1024
BYTES_PER_PIXEL = 240
"""Least memory per pixel of a colour picture during a restoration: the states of the loop and the smallest network
(measured with the embedded prior: 260 bytes a pixel at 12 million, more where the picture is not large enough for pieces)."""
BYTES_ALWAYS = 250 << 20
"""The libraries themselves."""
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def count_needed_memory(shape: tuple[int, int, int]) -> int:
    """Bytes that restoring an image of shape (C, H, W) takes at least, the program included."""
    channels, height, width = shape
    return BYTES_ALWAYS + height * width * BYTES_PER_PIXEL * (2 + channels) // 5  # a grey one needs three fifths


def find_memory() -> int | None:
    """Bytes of memory that the machine, or the container the program runs in, has; None if that is unknown."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system has sysconf or these names
        return None
    for file in _LIMITS:
        try:
            text = Path(file).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            found = min(found, int(text))
    return found if found > 0 else None


def check_memory(shape: tuple[int, int, int]) -> None:
    """Rejects an image of shape (C, H, W) that cannot be restored in the available memory."""
    needed, there = count_needed_memory(shape), find_memory()
    if there is not None and needed > there:
        raise LeaderError(
            f"Restoring {shape[2]} x {shape[1]} pixels takes at least {needed / 2**30:.1f} GB of memory; this machine has "
            f"{there / 2**30:.1f} GB, so crop the picture or restore it in parts."
        )


@contextmanager
def use_threads(count: int | None) -> Iterator[None]:
    """Runs the block with this number of torch threads; None: as many as torch is set to."""
    if count is None:
        yield
        return
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        raise UsageError(f"The number of threads must be an integer from 1 to {MOST_THREADS}; found {count}.")
    with limit_threads(count):
        yield


@contextmanager
def explain_memory(shape: tuple[int, int, int] | None) -> Iterator[None]:
    """Raises a LeaderError if the block runs out of memory, which torch reports as a RuntimeError.

    shape  (C, H, W) of the image, for the sentence
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        size = "this picture" if shape is None else f"a picture of {shape[2]} x {shape[1]} pixels"
        raise no_memory(size) from error
