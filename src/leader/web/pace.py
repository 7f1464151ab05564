"""How many seconds a restoration will take on this machine, before it begins.

A run takes a + b * work seconds, per step and per pixel that the network will see (`Preparation.work`). Both are learned:
from a short run when the server starts, and from every run after it.
"""

from __future__ import annotations

import threading
from collections import deque

from leader.restoration.restore import Preparation

REMEMBERED = 64
STEP, PIXEL = 0.01, 5e-6
"""Seconds a step and a pixel, before anything was learned."""


def effort(ready: Preparation) -> tuple[int, float]:
    """(steps, pixels the network will see) of a run; several that are averaged share their steps."""
    costs = [cost for _, cost in ready.work()]
    return len(costs), ready.average * sum(costs)


class Pace:
    """Seconds for an effort, by the runs so far."""

    def __init__(self) -> None:
        self._runs: deque[tuple[int, float, float]] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def learn(self, steps: int, pixels: float, seconds: float) -> None:
        """Takes note of a run that came to its end."""
        with self._lock:
            self._runs.append((steps, pixels, max(seconds, 1e-3)))

    def seconds(self, steps: int, pixels: float) -> float:
        """The usual ratio of a and b, scaled so that half of the runs so far took less and half took more.

        Runs whose size is nearest to this one tell most, since small ones are slower by the pixel.
        """
        plain = STEP * steps + PIXEL * pixels
        with self._lock:
            known = [(took / (STEP * n + PIXEL * p), abs(_log(p / max(pixels, 1.0)))) for n, p, took in self._runs]
        if not known:
            return plain
        nearest = sorted(known, key=lambda pair: pair[1])[:5]
        ratios = sorted(ratio for ratio, _ in nearest)
        return plain * ratios[len(ratios) // 2]


def _log(ratio: float) -> float:
    import math

    return math.log(max(ratio, 1e-12))


def in_words(seconds: float) -> str:
    """A length of time as people say it: about 4 s, about 2 min."""
    if seconds < 1:
        return "about 1 s"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
