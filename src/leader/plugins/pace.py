"""Informed pacing: times at which every call learns equally much per cost, given y.

Under ancestral sampling of the exact posterior E|x0(u) - x0(t)|^2 = V(t) - V(u), V(t) = E tr Cov[x0 | x_t, y]: what a step
learns is the drop of V, not its size. V is known before the run (`informed.left_open`: eight products of the covariance, no
solve inside the loop). The grid keeps its first time and its number of calls and ends at time 0; its steps spend the drop of
V evenly, each in proportion to the cost of its call where the prior's cost depends on time.

SATP, the paper's rule, paces inside the loop by the size of the prior's own variance, which does not depend on y.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.plugins.base import Plugin
from leader.plugins.informed import by_time, left_open, open_variances
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid


@dataclass(frozen=True)
class Pace(Plugin):
    """Spaces the times of a run so that every step gains the same information, given the measurement.

    >>> Pace().name, Pace.needs_sigma
    ('pace', False)
    """

    name: ClassVar[str] = "pace"
    summary: ClassVar[str] = "spaces the steps so that each gains the same information, given the measurement"
    paper: ClassVar[str] = "this project: docs/start.md"

    power: Annotated[float, "[0, 1]"] = 1.0
    """1 spends the drop of V evenly; 0 keeps to equal steps of log noise; between, a geometric mix of the two."""

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        if any(after > now for now, after in pairwise(grid.times)):
            raise LeaderError("Informed pacing serves grids that only descend; leave out time travel or the plug-in 'pace'.")
        first, height, width = grid.times[0], *problem.image_shape[1:]
        if first == 0:
            return grid
        drop = left_open(prior.schedule, *open_variances(prior, problem)).diff()[:first].clamp_min(0)
        cost = torch.tensor([prior.work(t, height, width) for t in range(1, first + 1)], dtype=torch.float64)
        plain = prior.schedule.log_noise.double().diff()[:first]
        density = (drop / drop.sum().clamp_min(1e-300)) ** self.power * (plain / plain.sum()) ** (1 - self.power) / cost
        times = even_times(density, min(grid.visits, first + 1))
        clock = tuple(prior.schedule.clock_of(t) for t in times)
        return by_time(Grid((*times, -1), clock=(*clock, -1)))


def even_times(density: Tensor, count: int) -> tuple[int, ...]:
    """`count` strictly decreasing times from len(density) to 0 between which the density sums to equal amounts.

    density  [first], what lies between time t and t + 1, >= 0
    """
    first = len(density)
    if count == 1:
        return (first,)
    total = torch.cat([torch.zeros(1, dtype=torch.float64), density.double().cumsum(0)])
    wanted = torch.linspace(float(total[-1]), 0, count, dtype=torch.float64)
    times = [int((total - value).abs().argmin()) for value in wanted]
    times[0], times[-1] = first, 0
    for i in range(count - 2, 0, -1):  # if times coincide, the earlier ones move up, but stay below the first
        times[i] = min(max(times[i], times[i + 1] + 1), first - i)
    return tuple(times)
