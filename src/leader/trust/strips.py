"""Rows of a large picture, a few at a time, so that sums over them take little memory."""

from collections.abc import Iterator

LARGE = 4_000_000
"""Pixels of a picture above which memory counts more than time; smaller ones are one strip."""
STRIP = 500_000
"""Pixels of a strip of a large picture."""


def strips(height: int, width: int, more: int = 0) -> Iterator[slice]:
    """Consecutive slices of rows, each with up to `more` rows of the next one."""
    rows = height if height * width <= LARGE else max(1, STRIP // width)
    for first in range(0, height, rows):
        yield slice(first, min(height, first + rows + more))
