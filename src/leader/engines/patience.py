"""How long a job may take before its worker is taken for frozen: many times what the longest so far took.

A worker that was stopped, or whose machine hangs, does not die and never answers. Its job is given to another one as well, and
the first answer counts: a job that is only slow loses nothing by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

TIMES = 6.0
"""Times the longest job so far, beyond which one is overdue."""
LEAST_SECONDS = 60.0
"""No job is overdue before."""
MOST_COPIES = 2
"""How often a job is given to another worker: one that is slow by its nature must not occupy them all."""


class Patience:
    """What the jobs of a run have taken, and when one of them is overdue."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._longest: float | None = None
        self._copies: dict[int, int] = {}

    def finish(self, seconds: float) -> None:
        """Takes note of what a job took, without the start of its worker."""
        self._longest = max(self._longest or 0.0, seconds)

    def is_overdue(self, since: float) -> bool:
        """Whether a job that was given at `since` should have been answered; never before another one was."""
        return self._longest is not None and self.now() - since >= self._limit()

    def may_copy(self, index: int) -> bool:
        """Whether the overdue job at this position may be given to another worker; counts it."""
        self._copies[index] = self._copies.get(index, 0) + 1
        return self._copies[index] <= MOST_COPIES

    def seconds_left(self, since: Iterable[float]) -> float | None:
        """Until the first of the jobs that were given at these times is overdue; None where that cannot be told."""
        first = min(since, default=None)
        return None if first is None or self._longest is None else max(0.0, first + self._limit() - self.now())

    def _limit(self) -> float:
        return max(LEAST_SECONDS, TIMES * (self._longest or 0.0))
