"""How long a job may take before its worker counts as frozen: many times the longest job so far.

A worker that was stopped, or whose machine hangs, does not die and never answers. Its job is also given to another worker, and
the first answer counts: a job that is merely slow loses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

TIMES = 6.0
"""A job is overdue after this multiple of the longest job so far."""
LEAST_SECONDS = 60.0
"""No job is overdue before this many seconds."""
MOST_COPIES = 2
"""How often a job is given to another worker: a slow job must not occupy all of them."""


class Patience:
    """The durations of the jobs of a run, and when a job is overdue."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._longest: float | None = None
        self._copies: dict[int, int] = {}

    def finish(self, seconds: float) -> None:
        """Records the duration of a job, without the start of its worker."""
        self._longest = max(self._longest or 0.0, seconds)

    def is_overdue(self, since: float) -> bool:
        """Whether a job started at `since` is overdue; never before another job has finished."""
        return self._longest is not None and self.now() - since >= self._limit()

    def may_copy(self, index: int) -> bool:
        """Whether the overdue job at this position may be given to another worker; counts the attempt."""
        self._copies[index] = self._copies.get(index, 0) + 1
        return self._copies[index] <= MOST_COPIES

    def seconds_left(self, since: Iterable[float]) -> float | None:
        """Seconds until the first of the jobs started at these times is overdue; None if unknown."""
        first = min(since, default=None)
        return None if first is None or self._longest is None else max(0.0, first + self._limit() - self.now())

    def _limit(self) -> float:
        return max(LEAST_SECONDS, TIMES * (self._longest or 0.0))
