"""How long a restoration will take, and how far it is.

Steps cost very different amounts: the embedded prior works on a small level of its pyramid while the noise is high, and SATP
skips steps altogether. So work is counted instead of steps: the cost that the prior declares for every remaining time.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from leader.operators.jpeg import Jpeg
from leader.plugins import Plugin
from leader.plugins.ucdc import UCDC
from leader.progress import TimeLeft, format_clock
from leader.restoration.resources import use_threads
from leader.restoration.restore import Preparation
from leader.result import Step
from leader.uncertainty.estimators import count_derivatives

DERIVATIVE = 2.0
"""Cost of a derivative of the network, along a direction or backwards, in network calls."""
ROUNDED = {"half": 0.55, "int8": 0.33}
"""Cost of a call in coarser numbers, in calls in single precision, on machines where they are used."""
OVERHEAD = 0.12
"""Usual cost of a step besides the network, as a share of a full-resolution network call."""
SOLVE = 0.05
"""Cost that one iteration of the solves of the plug-in `ucdc` adds to a step, in the same unit."""
JPEG = 0.2
"""Cost of the solve of a step if A is that of JPEG, in the same unit."""
AROUND = 1.0
"""Cost of the verdict, the trust map and the file after a run, in the same unit."""
SIDE, CPU_SIDE = 256, 96
"""The longest side of the picture on which the pace is measured; a processor is as fast per pixel on small ones: the embedded
prior within 2 %.
"""
CLOCK = 5
"""The time of the standard clock at which it is measured: so little noise that the network works at full size and precision."""
LEAST, MOST, PART = 0.04, 2.0, 0.02
"""The pace is measured for this part of the time that the run will take, and for so many seconds at least and at most: other
programs make a single call fast or slow.
"""


def count_work(ready: Preparation) -> float:
    """The largest possible work of a run, including writing the file, in pixels of full-resolution network calls."""
    _, height, width = ready.problem.image_shape
    costs = _list_costs(ready)
    around = (count_overhead(ready) * len(costs) + AROUND + ready.plan.method.cost.start) * height * width
    return ready.average * (_count_calls(ready) * sum(costs) + around)


def _list_costs(ready: Preparation) -> list[float]:
    """The cost of every network call that the run may make, in pixels of full-resolution calls in single precision."""
    firsts = ready.sampler.prior.rounded_from.items()
    return [cost * next((ROUNDED[name] for name, first in firsts if t >= first), 1.0) for t, cost in ready.work()]


def count_overhead(ready: Preparation) -> float:
    """The cost of a step besides the network, in full-resolution network calls."""
    solves = (item for item in ready.plan.plugins if isinstance(item, UCDC) and item.covariance == "full")
    operator = JPEG if isinstance(ready.problem.operator, Jpeg) else 0.0
    return OVERHEAD + operator + SOLVE * sum(item.iterations for item in solves)


def _count_calls(ready: Preparation) -> float:
    """The network's work in a step, including derivatives for the method and the uncertainty, in calls."""
    plan, cost = ready.plan, ready.plan.method.cost
    values, probes = math.prod(ready.problem.image_shape), int(plan.settings["probes"])
    visits = plan.grid.visits
    own = count_derivatives(plan.estimator, ready.sampler.prior, values, visits, probes)
    sigma = (own.calls + DERIVATIVE * (own.jvps + own.backwards)) / visits
    return cost.forward + DERIVATIVE * cost.backward + sigma


@dataclass(frozen=True)
class Forecast:
    """How long a run will take, without a second try, at the pace of a few network calls just before it.

    seconds  until its picture is written
    call     seconds of a network call on the whole picture
    most     whether `seconds` is an upper bound: a plug-in may skip steps
    """

    seconds: float
    call: float
    most: bool


def forecast_run(
    ready: Preparation,
    busy: float | None = None,
    clock: Callable[[], float] = time.perf_counter,
    own: Callable[[], float] = time.thread_time,
) -> Forecast:
    """Measures the current pace, which other programs on the machine slow down.

    busy  recent seconds per processor second: a few calls may be lucky or unlucky, so both measurements count equally
    """
    prior, (channels, height, width) = ready.sampler.prior, ready.problem.image_shape
    longest = CPU_SIDE if ready.problem.y.device.type == "cpu" else SIDE
    side = prior.size or (min(height, longest), min(width, longest))
    t = prior.schedule.at_clock(CLOCK)
    x = torch.zeros(1, channels, *side, device=ready.problem.y.device)
    work, used = count_work(ready) / prior.work(t, *side), list[float]()
    with torch.no_grad(), use_threads(ready.threads):
        begin = clock()
        while True:
            started = own()
            answer = prior._predict(x, torch.tensor([t], device=x.device))
            float((answer.x0 if answer.variance is None else answer.variance)[0, 0, 0, 0])  # a GPU is waited for
            used.append(own() - started)
            taken = clock() - begin
            pace = taken / len(used)
            if taken >= min(MOST, max(LEAST, PART * work * pace)):
                break
    if busy is not None and x.device.type == "cpu":
        pace = math.sqrt(pace * busy * min(used))  # the first call takes longer
    most = any(type(item).pace is not Plugin.pace for item in ready.plan.plugins)
    return Forecast(work * pace, pace * height * width / prior.work(t, *side), most)


class RunProgress(TimeLeft):
    """How far a run is, by its position on the grid, and the time that the rest will take at the pace so far.

    call  seconds of a network call on the whole picture, if measured: the first steps are too cheap to show it
    """

    def __init__(self, ready: Preparation, clock: Callable[[], float] = time.monotonic, call: float | None = None) -> None:
        _, height, width = ready.problem.image_shape
        each = ready.average * _count_calls(ready) / (height * width)
        self.costs = [each * cost for cost in _list_costs(ready)]
        self.position = 0
        overhead = ready.average * count_overhead(ready)
        super().__init__(len(self.costs), sum(self.costs), overhead, clock)
        if call is not None:
            self.learn(1.0, (1 + overhead) * call)

    def add(self, step: Step) -> None:
        """Counts a step of the one image of a restoration; a jump also counts the steps it skips."""
        after = len(self.costs) if int(step.u[0]) == -1 else self.position + int(step.jump[0])
        self.finish(self.costs[self.position])
        skipped = self.costs[self.position + 1 : after]
        self.drop(sum(skipped), len(skipped))
        self.position = after

    def __str__(self) -> str:
        text = f"step {self.position} of {len(self.costs)}"
        seconds = self.seconds_left
        return text if seconds is None else f"{text}, at most {format_clock(seconds)} left"
