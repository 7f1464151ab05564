"""How long a restoration will take, and how far it is.

Steps cost very different amounts: the embedded prior works on a small level of its pyramid while the noise is high, and SATP
skips steps altogether. So work is counted and not steps: the cost the prior declares for every time still ahead.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch

from leader.progress import TimeLeft, format_clock
from leader.restoration.restore import Preparation
from leader.result import Step
from leader.uncertainty.estimators import count_derivatives

DERIVATIVE = 2.0
"""What a derivative of the network takes, in calls of it."""
OVERHEAD = 0.2
"""What a step usually takes besides the network, as a share of a full-resolution network call."""
WORTH_MEASURING = 5_000_000
"""Pixels of network calls from which on the pace is measured: half a minute of one core for the embedded prior."""
SIDE = 256
"""Of the picture on which the pace is measured: a third of a second of one core for the embedded prior."""
CLOCK = 20
"""The time of the standard clock at which it is measured: little noise, so that the network works at full size."""


def count_work(ready: Preparation) -> float:
    """All that lies ahead of a run at most, in pixels of full-resolution network calls."""
    _, height, width = ready.problem.image_shape
    costs = [cost for _, cost in ready.work()]
    return ready.average * (_count_calls(ready) * sum(costs) + OVERHEAD * len(costs) * height * width)


def _count_calls(ready: Preparation) -> float:
    """What the network does at a step, derivatives for the uncertainty included, in calls."""
    plan = ready.plan
    values, probes = math.prod(ready.problem.image_shape), int(plan.settings["probes"])
    visits = plan.grid.visits
    own = count_derivatives(plan.estimator, ready.sampler.prior, values, visits, probes)
    return 1 + (own.calls + DERIVATIVE * (own.jvps + own.backwards)) / visits


def predict_seconds(ready: Preparation, clock: Callable[[], float] = time.perf_counter) -> float | None:
    """Seconds that the run will take at most, without a second try, at the pace of one small network call.

    None where it is too short to be worth measuring.
    """
    if ready.average * _count_calls(ready) * sum(cost for _, cost in ready.work()) < WORTH_MEASURING:
        return None
    prior = ready.sampler.prior
    side = prior.size or (SIDE, SIDE)
    t = prior.schedule.at_clock(CLOCK)
    x = torch.zeros(1, ready.problem.image_shape[0], *side, device=ready.problem.y.device)
    with torch.no_grad(), ready.with_its_threads():
        begin = clock()
        prior._predict(x, torch.tensor([t], device=x.device))
        took = clock() - begin
    return took / prior.work(t, *side) * count_work(ready)


class RunProgress(TimeLeft):
    """How far a run is, by its position on the grid, and the time that the rest will take at the pace so far."""

    def __init__(self, ready: Preparation, clock: Callable[[], float] = time.monotonic) -> None:
        _, height, width = ready.problem.image_shape
        self.costs = [cost / (height * width) for _, cost in ready.work()]
        self.position = 0
        super().__init__(len(self.costs), sum(self.costs), OVERHEAD, clock)

    def add(self, step: Step) -> None:
        """Takes note of a step of the one image of a restoration; a jump takes all that it leaves out."""
        after = len(self.costs) if int(step.u[0]) == -1 else self.position + int(step.jump[0])
        self.finish(self.costs[self.position])
        skipped = self.costs[self.position + 1 : after]
        self.drop(sum(skipped), len(skipped))
        self.position = after

    def __str__(self) -> str:
        text = f"step {self.position} of {len(self.costs)}"
        seconds = self.seconds_left
        return text if seconds is None else f"{text}, at most {format_clock(seconds)} left"
