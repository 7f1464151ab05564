"""Progress of a job, the time left, and the wording of both: for restorations, folders and experiments."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

SILENCE = 10.0
"""Seconds between two lines where no bar can be drawn."""
REMEMBERED, NEAREST = 64, 5
"""Finished runs that a `MachinePace` keeps, and how many of them, the nearest in size, tell the time of the next."""


class TimeLeft:
    """Items of work, and the time that those ahead will take at the pace of those done.

    Items cost different amounts. One takes a + b * cost seconds; a and b are fitted to the items so far, starting from a usual
    ratio, since the first items are often alike and cannot tell a from b.

    count, cost  items ahead, and the sum of their costs, in any unit
    overhead     usual a / b: what an item takes besides its cost, in the unit of costs
    """

    def __init__(self, count: int, cost: float, overhead: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._count, self._cost, self._overhead = count, cost, overhead
        self._total = cost + overhead * count
        self._clock, self._last = clock, clock()
        self._n = 0
        self._w = self._ww = self._s = self._ws = 0.0  # sums over items done: cost, its square, seconds, cost * seconds

    def finish(self, cost: float) -> None:
        """An item that was done since the last one."""
        now = self._clock()
        self.learn(cost, now - self._last)
        self._last = now
        self.drop(cost)

    def learn(self, cost: float, seconds: float) -> None:
        """What an item took that is none of those ahead."""
        self._n += 1
        self._w, self._ww = self._w + cost, self._ww + cost * cost
        self._s, self._ws = self._s + seconds, self._ws + cost * seconds

    def drop(self, cost: float, count: int = 1) -> None:
        """Items that are no longer ahead, and say nothing of the pace."""
        self._count -= count
        self._cost -= cost

    @property
    def share(self) -> float:
        """Share of the work that no longer lies ahead, from 0 to 1."""
        return 1 - self._ahead(self._overhead, 1.0) / self._total if self._total > 0 else 1.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds for all that may still lie ahead; None before the first item that costs anything."""
        if self._n == 0 or self._w + self._overhead <= 0:
            return None
        return self._ahead(*self._fit())

    def _ahead(self, fixed: float, per_cost: float) -> float:
        return max(0.0, fixed * self._count + per_cost * self._cost)

    def _fit(self) -> tuple[float, float]:
        """(a, b) by least squares, held near a = overhead * b as strongly as one item would."""
        # normal equations of sum (a + b w - s)^2 + (a - overhead b)^2
        usual = self._overhead
        aa, ab, bb = self._n + 1, self._w - usual, self._ww + usual**2
        determinant = aa * bb - ab * ab  # > 0: the added term is not parallel to any item's
        fixed = (self._s * bb - self._ws * ab) / determinant
        per_cost = (aa * self._ws - ab * self._s) / determinant
        if fixed >= 0 and per_cost >= 0:
            return fixed, per_cost
        ratio = self._s / (usual * self._n + self._w)
        return usual * ratio, ratio


class Busyness:
    """How many seconds pass for a second of the processor, since it was made: what else the machine does, 1 where nothing."""

    def __init__(self) -> None:
        self._begun = time.perf_counter(), time.thread_time()

    @property
    def ratio(self) -> float:
        passed, used = time.perf_counter() - self._begun[0], time.thread_time() - self._begun[1]
        return max(1.0, passed / used) if used > 0 else 1.0


class MachinePace:
    """Seconds for an amount of work before it begins, by the runs of this machine so far.

    usual  seconds per unit of work before anything was learned
    """

    def __init__(self, usual: float) -> None:
        self._usual = usual
        self._runs: deque[tuple[str, float, float]] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def learn(self, work: float, seconds: float, kind: str = "") -> None:
        """Takes note of a run that came to its end; runs of one kind leave out the same share of the work ahead."""
        with self._lock:
            self._runs.append((kind, work, max(seconds, 1e-3)))

    def predict_seconds(self, work: float, kind: str = "") -> float:
        """At the median pace of the runs nearest in size: small ones are slower by the unit, and one may be disturbed.

        Runs of the same kind count, where there are any; others tell what a run takes at most.
        """
        with self._lock:
            runs = [run for run in self._runs if run[0] == kind] or list(self._runs)
        nearest = sorted(runs, key=lambda run: abs(math.log(max(run[1], 1.0) / max(work, 1.0))))[:NEAREST]
        paces = sorted(seconds / done for _, done, seconds in nearest if done > 0) or [self._usual]
        return work * paces[len(paces) // 2]


class ProgressDisplay:
    """One line about work under way, on stderr: beside a bar on a terminal, every few seconds elsewhere, also while a single
    step takes longer than that.

    say    writes a line where there is no terminal
    every  seconds between two such lines; None for neither lines nor a bar
    text   the line until something is shown
    """

    def __init__(
        self,
        say: Callable[[str], None],
        every: float | None = SILENCE,
        clock: Callable[[], float] = time.monotonic,
        text: str = "The work has begun; its first step is not done yet.",
    ) -> None:
        self._say, self._every, self._clock = say, every, clock
        self._last, self._text = clock(), text
        self._bar: Any = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._reminder: threading.Thread | None = None

    def __enter__(self) -> ProgressDisplay:
        from rich.console import Console

        console = Console(stderr=True)
        if self._every is not None and console.is_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            self._bar = Progress(BarColumn(), TextColumn("{task.description}"), console=console, transient=True)
            self._task = self._bar.add_task(self._text, total=1.0)
            self._bar.start()
        elif self._every:
            self._ended.clear()
            self._reminder = threading.Thread(target=self._remind, args=(min(1.0, self._every),), daemon=True)
            self._reminder.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        if self._reminder is not None:
            self._reminder.join()
            self._reminder = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def show(self, share: float, text: str) -> None:
        """Says how far it is: `share` from 0 to 1, `text` a line."""
        if self._bar is not None:
            self._bar.update(self._task, completed=share, description=text)
            return
        with self._lock:
            self._text = text
        self._say_when_due()

    def _say_when_due(self) -> None:
        with self._lock:
            if self._every is None or self._clock() - self._last < self._every:
                return
            self._last = self._clock()
            self._say(self._text)

    def _remind(self, pause: float) -> None:
        while not self._ended.wait(pause):
            self._say_when_due()


def format_clock(seconds: float) -> str:
    """0:40, 12:05, 3:00:00."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def format_duration(seconds: float) -> str:
    """A length of time as people say it: 4 s, 2 min, 1.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
