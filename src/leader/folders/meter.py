"""The progress of a folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from leader.progress import TimeLeft, format_clock


class FolderMeter(TimeLeft):
    """Counts pictures. The time of a picture grows with its size, which is estimated from its file without decoding.

    sizes  bytes of every picture that will be reported by `settle`
    """

    def __init__(self, sizes: Iterable[int], clock: Callable[[], float] = time.monotonic) -> None:
        listed = list(sizes)
        self.total = len(listed)
        self.settled = self.failed = 0
        self._mean = sum(listed) / max(1, self.total) or 1.0
        # an empty file is assumed to take half as long as one of mean size
        super().__init__(self.total, sum(listed) / self._mean, 1.0, clock)

    def settle(self, size: int, failed: bool = False) -> None:
        """Counts a finished picture; failures mostly happen early and say nothing about the pace."""
        self.settled += 1
        self.failed += failed
        (self.drop if failed else self.finish)(size / self._mean)

    def __str__(self) -> str:
        text = f"{self.settled} of {self.total} pictures"
        if self.failed:
            text += f", {self.failed} failed"
        seconds = self.seconds_left
        return text if seconds is None or self.settled == self.total else f"{text}, about {format_clock(seconds)} left"
