"""How long a restoration will take, said before it begins: the work that lies ahead, at the pace of one small network call."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from leader.restoration.progress import OVERHEAD
from leader.restoration.restore import Preparation

WORTH_ASKING = 5_000_000
"""Pixels of network calls from which on the pace is measured: half a minute of one core for the embedded prior."""
SIDE = 256
"""Of the picture on which the pace is measured: a third of a second of one core for the embedded prior."""
CLOCK = 20
"""The time of the standard clock at which it is measured: little noise, so that the network works at full size."""


def seconds_ahead(ready: Preparation, clock: Callable[[], float] = time.perf_counter) -> float | None:
    """Seconds that the run will take at most, without a second try; None where it is too short to be worth measuring."""
    channels, height, width = ready.problem.image_shape
    costs = [cost for _, cost in ready.work()]
    if ready.average * sum(costs) < WORTH_ASKING:
        return None
    prior = ready.sampler.prior
    side = prior.size or (SIDE, SIDE)
    t = prior.schedule.at_clock(CLOCK)
    x = torch.zeros(1, channels, *side, device=ready.problem.y.device)
    with torch.no_grad(), ready.with_its_threads():
        begin = clock()
        prior._predict(x, torch.tensor([t], device=x.device))
        took = clock() - begin
    pace = took / prior.work(t, *side)
    return ready.average * pace * (sum(costs) + OVERHEAD * len(costs) * height * width)
