"""What a person sees while a restoration runs: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from leader.cli.console import to_stderr
from leader.restoration.progress import WorkLeft
from leader.restoration.restore import Preparation
from leader.result import Step

SILENCE = 10.0
"""Seconds between two lines where no bar can be drawn."""
LONG = 60.0
"""A run that will take longer than this many seconds is announced."""


@contextmanager
def progress_bar(ready: Preparation, label: str, told: bool = False) -> Iterator[Callable[[Step], None]]:
    """Shows the progress on stderr while the block runs; hands out the callback for its steps.

    told  whether it was said already how long it will take
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    left = WorkLeft(ready)
    announced = Announcer(left, told=told)
    if not console.is_terminal:
        yield announced
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=1.0, left="")

        def on_step(step: Step) -> None:
            announced(step, every=None)
            bar.update(task, completed=left.done, left=where(left))

        yield on_step


class Announcer:
    """Says once how long a long run will take, and every few seconds how far it is."""

    def __init__(
        self,
        left: WorkLeft,
        say: Callable[[str], None] = to_stderr,
        clock: Callable[[], float] = time.monotonic,
        told: bool = False,
    ) -> None:
        self.left, self._say, self._clock = left, say, clock
        self._last = clock()
        self._first = not told

    def __call__(self, step: Step, every: float | None = SILENCE) -> None:
        """Takes note of a step; a line after `every` seconds of silence, None for no such lines."""
        self.left.step(step)
        now, seconds = self._clock(), self.left.seconds_left
        if self._first and seconds is not None and seconds > LONG:
            self._say(f"This will take up to {duration(seconds)}; fewer --steps or a smaller picture take less.")
            self._last = now
        self._first = False
        if every is not None and now - self._last >= every and seconds:
            self._say(where(self.left))
            self._last = now


def where(left: WorkLeft) -> str:
    """step 12 of 100, at most 0:40 left."""
    text = f"step {left.position} of {len(left.costs)}"
    seconds = left.seconds_left
    if seconds is None:
        return text
    whole = round(seconds)
    return f"{text}, at most {whole // 60}:{whole % 60:02d} left"


def duration(seconds: float) -> str:
    """A length of time, rounded as people say it."""
    minutes = max(1, round(seconds / 60))
    if minutes < 60:
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    hours = seconds / 3600
    return f"{hours:.1f} hours"
