"""Progress of an experiment with the time left, on stderr."""

from __future__ import annotations

import sys
from types import TracebackType

from leader.progress import ProgressDisplay, TimeLeft, format_clock

LOG_EVERY = 30.0
"""Seconds between two lines of a log."""


class Meter:
    """Counts cells and the passes they cost.

    cells, passes  all that will be reported by `done`
    """

    def __init__(self, name: str, cells: int, passes: float, *, quiet: bool = False) -> None:
        self.name, self.cells, self.finished = name, cells, 0
        self._left = TimeLeft(cells, passes)
        self._display = ProgressDisplay(_print_line, None if quiet else LOG_EVERY)

    def __enter__(self) -> Meter:
        self._display.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._display.__exit__(kind, error, trace)

    def skip(self, passes: float) -> None:
        """A cell that needs no run."""
        self.cells -= 1
        self._left.drop(passes)

    def done(self, passes: float) -> None:
        """A cell that has run."""
        self.finished += 1
        self._left.finish(passes)
        self._display.show(self._left.share, str(self))

    def __str__(self) -> str:
        seconds = self._left.seconds_left
        clock = "" if seconds is None else f", {format_clock(seconds)} left"
        return f"{self.name}: {self.finished}/{self.cells} cells{clock}"


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
