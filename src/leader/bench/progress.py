"""Progress with the time left, on stderr: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

LOG_EVERY = 30.0
"""Seconds between two lines of a log."""


class Meter:
    """Counts cells and the passes they cost; time left follows from the passes done so far.

    cells, passes  all that will be reported by `done`
    """

    def __init__(self, name: str, cells: int, passes: float, *, quiet: bool = False) -> None:
        self.name, self.cells, self.passes, self.quiet = name, cells, passes, quiet
        self.finished, self.spent = 0, 0.0
        self._started = self._last = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> Meter:
        if not self.quiet and sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(file=sys.stderr))
            self._bar.start()
            self._task = self._bar.add_task(self._line(), total=self.passes)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def skip(self, passes: float) -> None:
        """A cell that needs no run."""
        self.cells -= 1
        self.passes -= passes
        if self._bar is not None:
            self._bar.update(self._task, total=self.passes, description=self._line())

    def done(self, passes: float) -> None:
        """A cell that has run."""
        self.finished += 1
        self.spent += passes
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=self.spent, description=self._line())
        elif not self.quiet and (now - self._last >= LOG_EVERY or self.finished == self.cells):
            self._last = now
            print(self._line(), file=sys.stderr, flush=True)

    def _line(self) -> str:
        left = self.seconds_left(time.monotonic() - self._started)
        clock = "" if left is None else f", {int(left) // 60} min {int(left) % 60:02d} s left"
        return f"{self.name}: {self.finished}/{self.cells} cells{clock}"

    def seconds_left(self, elapsed: float) -> float | None:
        """Time left at the rate so far; None before the first cell that costs anything."""
        if self.spent <= 0:
            return None
        return elapsed * max(0.0, self.passes - self.spent) / self.spent
