"""How far a folder is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from leader.progress import TimeLeft, format_clock


class FolderMeter:
    """Counts pictures. What one takes grows with its size, which only its file tells without decoding.

    sizes  bytes of every picture that will be reported by `finish`
    """

    def __init__(self, sizes: Iterable[int], clock: Callable[[], float] = time.monotonic) -> None:
        listed = list(sizes)
        self.total = len(listed)
        self.finished = self.failed = 0
        self._mean = sum(listed) / max(1, self.total) or 1.0
        # a picture of no bytes would usually take half as long as one of the mean size
        self._left = TimeLeft(self.total, sum(listed) / self._mean, 1.0, clock)

    def finish(self, size: int, failed: bool = False) -> None:
        """A picture that was dealt with; those that fail do so early, mostly, and say nothing of the pace."""
        self.finished += 1
        self.failed += failed
        (self._left.drop if failed else self._left.finish)(size / self._mean)

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self._left.share

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first picture."""
        return self._left.seconds_left

    def __str__(self) -> str:
        text = f"{self.finished} of {self.total} pictures"
        if self.failed:
            text += f", {self.failed} failed"
        seconds = self.seconds_left
        return text if seconds is None or self.finished == self.total else f"{text}, about {format_clock(seconds)} left"
