"""How far a folder is, and how long the rest will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable


class FolderMeter:
    """Counts pictures, and estimates the time left from those done so far.

    What a picture takes grows with its size, which only its file tells without decoding: half of the weight of a picture is
    the same for all, half follows its bytes.

    sizes  bytes of every picture that will be reported by `done`
    """

    def __init__(self, sizes: Iterable[int], clock: Callable[[], float] = time.monotonic) -> None:
        listed = list(sizes)
        self.total = len(listed)
        self.finished = self.failed = 0
        self._mean = sum(listed) / self.total if listed else 1.0
        self._left = sum(self._weight(size) for size in listed)
        self._spent = 0.0
        self._clock, self._begin = clock, clock()

    def _weight(self, size: int) -> float:
        return 0.5 + 0.5 * size / self._mean if self._mean else 1.0

    def done(self, size: int, failed: bool = False) -> None:
        """A picture that was dealt with."""
        self.finished += 1
        self.failed += failed
        self._left -= self._weight(size)
        if not failed:  # those fail early, mostly: they say nothing of the pace
            self._spent += self._weight(size)

    @property
    def share(self) -> float:
        """From 0 to 1."""
        return self.finished / self.total if self.total else 1.0

    @property
    def seconds_left(self) -> float | None:
        """At the pace so far; None before the first picture."""
        if self._spent <= 0:
            return None
        return (self._clock() - self._begin) * max(0.0, self._left) / self._spent

    def words(self) -> str:
        """12 of 60 pictures, 1 failed, about 0:40 left."""
        text = f"{self.finished} of {self.total} pictures"
        if self.failed:
            text += f", {self.failed} failed"
        seconds = self.seconds_left
        if seconds is None or self.finished == self.total:
            return text
        return f"{text}, about {clock_words(seconds)} left"


def clock_words(seconds: float) -> str:
    """0:40, 12:05, 3:00:00."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
