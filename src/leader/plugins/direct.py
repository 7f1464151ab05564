"""Direct: a noisy picture is already a state of the forward process; the run begins with it, at the time with the same noise.

If only white noise is to be removed, p(x0 | y) is p(x0 | x_t) at that time: one call of the network gives its mean, and higher
noise levels add nothing. What methods do above that time is overwritten when they reach it, and what they do below it turns the
mean into a draw. For every other operator, and for data without noise, this plug-in does nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.pointwise import Denoising
from leader.plugins.base import Plugin
from leader.plugins.informed import by_time
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid, Schedule, grid_on, noise_grid

LAST_BEFORE = 1.5
"""The last noise level above, in multiples of sigma. Times are sparse at low noise: if the nearest one below is a tenth cleaner
than the picture, a tenth of the state comes from the previous estimate, which should be good.
"""


@dataclass(frozen=True)
class Direct(Plugin):
    """Begins a denoising with the noisy picture, at its own noise level.

    >>> Direct().name, Direct.needs_sigma
    ('direct', False)
    """

    name: ClassVar[str] = "direct"
    summary: ClassVar[str] = "denoises in one call, from the noisy picture at its own noise level"
    paper: ClassVar[str] = "this project: docs/noise.md"
    begins: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    calls: Annotated[int, "[1, inf)"] = 2
    """Steps after that, spaced by noise level: one gives the mean, three restore texture, many give a draw."""
    before: tuple[int, ...] = (200, 120)
    """Times of the standard clock above the picture's own that are visited first, for the uncertainty they show; then one just
    above it.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 < after < first < 1000 for first, after in pairwise((*self.before, 1))):
            raise LeaderError(f"Direct denoising needs falling times below 1000 before it; found {self.before}.")

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        if not _plain(problem):
            return grid
        times, schedule = self._times(prior.schedule, float(problem.sigma[0])), prior.schedule
        return by_time(Grid(times, clock=tuple(schedule.clock_of(time) if time >= 0 else -1 for time in times)))

    def origin(self, prior: Prior, problem: Problem, noise: Callable[[str], Tensor]) -> Tensor | None:
        """y with its noise reduced so that the noise the host adds brings it to the level of the first time."""
        if not _plain(problem):
            return None
        first = torch.tensor([self._times(prior.schedule, sigma)[0] for sigma in problem.sigma.tolist()])
        level = prior.schedule.level(first, problem.y)
        lacking = (level.sigma**2 - problem.sigma_column(level.sigma) ** 2).clamp_min(0).sqrt()
        return problem.y + (lacking - level.sigma).to(problem.y) * noise("start")

    def _times(self, schedule: Schedule, sigma: float) -> tuple[int, ...]:
        """The times of one image with noise of sigma, in [-1, 1] units."""
        own = schedule.nearest(sigma)
        if float(schedule.log_noise[own]) / 2 > math.log(sigma) and own > 0:
            own -= 1  # a time above its noise level would draw some
        clock = schedule.clock_of(own)
        below = grid_on(schedule, min(self.calls, clock + 1), lambda steps, total: noise_grid(steps, total, clock))
        last = max(schedule.nearest(LAST_BEFORE * sigma), own + 1)
        above = [time for time in map(schedule.at_clock, self.before) if time > last]
        return (*above, *([last] if self.before and last < len(schedule) else []), *below.times)


def _plain(problem: Problem) -> bool:
    return isinstance(problem.operator, Denoising) and not problem.noise_free
