"""Time left that is honest, for progress bars and pages.

Steps cost very different amounts: the embedded prior works on a small level of its pyramid while the noise
is high, and SATP skips steps altogether. So work is counted and not steps: the cost the prior declares for
every time still ahead. A step takes a + b * work seconds; a and b are fitted to the steps so far, starting
from a usual ratio, since the first steps are all alike and cannot tell a from b.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from leader.restoration.restore import Preparation
from leader.result import Step

OVERHEAD = 0.2
"""Usual a / b: what a step takes besides the network, as a share of a full-resolution network call."""


class WorkLeft:
    """Work ahead of a run, by grid position, and the time it will take at the pace so far."""

    def __init__(self, ready: Preparation, clock: Callable[[], float] = time.monotonic) -> None:
        _, height, width = ready.problem.image_shape
        self.costs = [cost / (height * width) for _, cost in ready.work()]
        self.total = sum(self.costs) + OVERHEAD * len(self.costs)
        self.position = 0
        self._took: list[tuple[float, float]] = []
        self._clock, self._last = clock, clock()

    def step(self, step: Step) -> None:
        """Takes note of a step of the one image of a restoration."""
        now = self._clock()
        self._took.append((self.costs[self.position], now - self._last))
        self._last = now
        self.position += int(step.jump[0])
        if int(step.u[0]) == -1:
            self.position = len(self.costs)

    @property
    def done(self) -> float:
        """Share of the work that no longer lies ahead, from 0 to 1."""
        ahead = self.costs[self.position :]
        return 1 - (sum(ahead) + OVERHEAD * len(ahead)) / self.total

    @property
    def seconds_left(self) -> float | None:
        """Seconds for all that may still lie ahead; None before the first step."""
        if not self._took:
            return None
        fixed, per_work = self._pace()
        return sum(fixed + per_work * cost for cost in self.costs[self.position :])

    def _pace(self) -> tuple[float, float]:
        """(a, b) by least squares, held near a = OVERHEAD * b as strongly as one step would."""
        # normal equations of sum (a + b w - s)^2 + (a - OVERHEAD b)^2
        n = len(self._took)
        w = sum(cost for cost, _ in self._took)
        ww = sum(cost * cost for cost, _ in self._took)
        s = sum(seconds for _, seconds in self._took)
        ws = sum(cost * seconds for cost, seconds in self._took)
        aa, ab, bb = n + 1, w - OVERHEAD, ww + OVERHEAD**2
        determinant = aa * bb - ab * ab  # > 0: the added term is not parallel to any step's
        fixed = (s * bb - ws * ab) / determinant
        per_work = (aa * ws - ab * s) / determinant
        if fixed >= 0 and per_work >= 0:
            return fixed, per_work
        ratio = s / (OVERHEAD * n + w)
        return OVERHEAD * ratio, ratio
