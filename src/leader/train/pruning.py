"""Calibrates SATP's eta for a prior and its estimator of Sigma: how many of 100 calls a budget B should leave.

The paper fixes B = 0.01 and leaves eta open; its Table 3 gives the share of the time for each budget. The host runs once
without pruning, U_t along its paths is stored, and SATP is simulated on these curves for many values of eta. Pruning changes a
path a little, so the number of calls is a prediction.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators import BicubicSR, LinearOperator, SeparableBlur, paper_gaussian_taps
from leader.plugins.satp import SATP
from leader.priors.base import Prior
from leader.problem import Problem
from leader.sampler import Sampler
from leader.schedule import Grid
from leader.uncertainty.estimators import Estimator

STEPS, TASKS = 100, 3
RANGES: Mapping[float, tuple[float, float]] = {
    0.001: (99, 100),
    0.005: (96, 100),
    0.01: (92, 98),
    0.05: (45, 65),
    0.1: (25, 45),
}
"""Calls of 100 by budget: around 100, 99, 97, 53 and 32, the times of the paper's Table 3."""
CANDIDATES: tuple[float, ...] = tuple(float(f"{value:.2g}") for value in np.geomspace(0.05, 50, 121))
"""Candidates, each 6 % above the previous one."""


@dataclass(frozen=True)
class Curve:
    """U_t at each position of a grid, along the path of one image without pruning."""

    grid: Grid
    values: tuple[float, ...]


@dataclass(frozen=True)
class Calibrated:
    """The eta nearest to the ranges, and the mean calls it leaves for each budget."""

    eta: float
    calls: Mapping[float, float]

    @property
    def missed(self) -> tuple[float, ...]:
        """Budgets whose calls are outside their range: there may be no eta that fits all."""
        return tuple(budget for budget, mean in self.calls.items() if outside(mean, RANGES[budget]) > 0)


def predict_seconds(prior: Prior, clean: Tensor, estimator: str | Estimator = "auto") -> float:
    """How long `curves` of clean [N, C, H, W] in [0, 1] will take, from the fastest of three steps with one picture."""
    operator = BicubicSR((int(clean.shape[1]), int(clean.shape[2]), int(clean.shape[3])), 4)
    sampler = Sampler(prior, "ddnm", [SATP(budget=0.0)], 4, estimator=estimator)
    times = [time.monotonic()]
    sampler.run(Problem(operator.A(clean[:1]), operator, 0.0), on_step=lambda step: times.append(time.monotonic()))
    return TASKS * STEPS * len(clean) * min(end - begin for begin, end in pairwise(times[1:]))


def curves(
    prior: Prior,
    clean: Tensor,
    estimator: str | Estimator = "auto",
    say: Callable[[str], None] | None = None,
    steps: int = STEPS,
) -> list[Curve]:
    """One curve for each picture of clean [N, C, H, W] in [0, 1] and each of three tasks: super-resolution x4 without noise
    and with noise of 0.05, Gaussian deblurring.
    """
    shape = (int(clean.shape[1]), int(clean.shape[2]), int(clean.shape[3]))
    enlarge: LinearOperator = BicubicSR(shape, 4)
    tasks = [(enlarge, 0.0), (enlarge, 0.05), (SeparableBlur(shape, paper_gaussian_taps()), 0.05)]
    reader = SATP(budget=0.0)  # never jumps, but estimates Sigma as with pruning
    sampler = Sampler(prior, "ddnm", [reader], steps, estimator=estimator)
    found = []
    for number, (operator, sigma) in enumerate(tasks, 1):
        y = operator.A(clean)
        y = y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(0)).to(y)
        problem = Problem(y, operator, sigma)
        grid = sampler.plan(problem).grid
        result = sampler.run(problem)
        found += [Curve(grid, tuple(float(visit.U or 0) for visit in visits)) for visits in result.trace.values()]
        if say is not None:
            say(f"{len(clean)} pictures, task {number} of {len(tasks)}")
    return found


def eta_entry(found: Calibrated) -> dict[str, Any]:
    """The preset that a calibration stores beside its prior."""
    eta = {"eta": found.eta}
    return {"settings": {"satp": eta, "satp-paper": eta}, "source": "ours: leader calibrate-satp"}


def calls(curve: Curve, satp: SATP) -> int:
    """How many times SATP visits if U_t follows the curve."""
    position, visited = 0, 0
    while curve.grid.times[position] >= 0:
        visited += 1
        position = satp.pace(curve.grid, position, curve.values[position])
    return visited


def outside(mean: float, bounds: tuple[float, float]) -> float:
    """How far a number lies outside its bounds, 0 inside."""
    return max(bounds[0] - mean, mean - bounds[1], 0.0)


def calibrate_eta(recorded: Sequence[Curve], candidates: Sequence[float] = CANDIDATES) -> Calibrated:
    """The eta whose calls miss the ranges least; ties go to the one nearest to their centres."""
    if not recorded:
        raise LeaderError("There is no curve of U_t to calibrate SATP with: give at least one picture.")
    tried = []
    for eta in candidates:
        means = {
            budget: sum(calls(curve, SATP(budget=budget, eta=eta)) for curve in recorded) / len(recorded) for budget in RANGES
        }
        miss = sum(outside(mean, RANGES[budget]) for budget, mean in means.items())
        middle = sum(abs(mean - sum(RANGES[budget]) / 2) for budget, mean in means.items())
        tried.append((miss, middle, Calibrated(eta, means)))
    return min(tried, key=lambda item: item[:2])[2]
