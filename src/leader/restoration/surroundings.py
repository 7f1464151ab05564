"""What holds while torch works on a picture: its threads, and a sentence where the memory does not suffice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from leader.errors import LeaderError, UsageError

MOST_THREADS = 1024


@contextmanager
def with_threads(count: int | None) -> Iterator[None]:
    """Torch with so many threads, for the time of the block."""
    if count is None:
        yield
        return
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        raise UsageError(f"The number of threads must be an integer from 1 to {MOST_THREADS}; found {count}.")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def memory_in_words(shape: tuple[int, int, int] | None) -> Iterator[None]:
    """One sentence where the memory does not suffice, which torch reports as a RuntimeError."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
            raise
        size = "this picture" if shape is None else f"a picture of {shape[2]} x {shape[1]} pixels"
        raise LeaderError(f"The memory does not suffice for {size}; restore a part of it.") from error
