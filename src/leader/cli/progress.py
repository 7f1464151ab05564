"""A progress bar whose time left is honest.

Steps cost very different amounts: the embedded prior works on a small level of its pyramid while the noise is
high, and SATP skips steps altogether. So the bar counts work, not steps: the cost the prior declares for
every time still ahead, plus what a step costs
whatever its time. When a step jumps, the skipped work counts as done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from leader.restoration import Preparation
from leader.result import Step

OVERHEAD = 0.05
"""Cost of a step besides the network (data consistency, noise), as a share of a full-resolution network call.
"""


class WorkLeft:
    """Work ahead of a run, by grid position, and the time it will take at the pace so far."""

    def __init__(self, ready: Preparation, clock: Callable[[], float] = time.monotonic) -> None:
        _, height, width = ready.problem.image_shape
        floor = OVERHEAD * height * width
        self.costs = [cost + floor for _, cost in ready.work()]
        self.total = sum(self.costs)
        self.position = 0
        self.spent_on = 0.0
        self._clock, self._begin = clock, clock()

    def step(self, step: Step) -> None:
        """Takes note of a step of the one image of a restoration."""
        self.spent_on += self.costs[min(self.position, len(self.costs) - 1)]
        self.position += int(step.jump[0])
        if int(step.u[0]) == -1:
            self.position = len(self.costs)

    @property
    def done(self) -> float:
        """Share of the work that no longer lies ahead, from 0 to 1."""
        return 1 - sum(self.costs[self.position :]) / self.total

    @property
    def seconds_left(self) -> float | None:
        """Seconds for all that may still lie ahead; None before the first step."""
        if self.spent_on == 0:
            return None
        return (self._clock() - self._begin) / self.spent_on * sum(self.costs[self.position :])


@contextmanager
def progress_bar(ready: Preparation, label: str) -> Iterator[Callable[[Step], None]]:
    """Shows a bar on stderr while the block runs; hands out the callback for its steps. Silent where stderr
    is no terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(stderr=True)
    left = WorkLeft(ready)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(label, total=1.0, left="")

        def on_step(step: Step) -> None:
            left.step(step)
            bar.update(task, completed=left.done, left=f"step {step.index + 1}, {_clock_text(left.seconds_left)}")

        yield on_step


def _clock_text(seconds: float | None) -> str:
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"at most {whole // 60}:{whole % 60:02d} left"
