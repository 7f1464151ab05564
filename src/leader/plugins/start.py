"""The informed start: begin where y has already said what the high noise levels would say.

For a Gaussian prior, P = Cov[x0 | y] with eigenvalues p and r = p / s_t^2: a run that begins at time t from E[x0 | y] and
fresh noise, N(sqrt(abar) m, (1 - abar) I), lacks the spread abar P of p(x_t | y). An exact ancestral sampler makes up for
most of it; what stays lost is sum p r^2 / (1 + r)^2 of the variance, and sum (r / (1 + r))^2 (m - E[x0 | y])^2 of the mean.
The start is the smallest time at which both are at most `share` of sum p. A drawn x0 ~ N(E[x0 | y], P) loses nothing on
Gaussian priors at any time.

The covariance is the prior's own Gaussian model (`leader.uncertainty.covariance`): exact for Gaussian priors, the fitted
spectrum of photographs otherwise. Nearest: CCDF, SDEdit and DiffPIR's t_start (a constant start), Flash-Diffusion (a start
by the severity of each sample).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.plugins.base import Plugin
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid, Schedule, grid_on, noise_grid
from leader.uncertainty.covariance import Posterior, image_covariance

LANCZOS_STEPS = 10


@dataclass(frozen=True)
class Start(Plugin):
    """Begins a run at the time up to which y already speaks, from the best guess that y allows."""

    name: ClassVar[str] = "start"
    summary: ClassVar[str] = "begins late, from what the measurement already says, where early steps add nothing"
    paper: ClassVar[str] = "this project: docs/start.md"
    begins: ClassVar[bool] = True

    share: float = 0.05
    """Of the variance that y leaves open, how much a late start may lose."""
    time: int | None = None
    """A constant first time of the standard clock instead of the rule."""
    draw: bool = False
    """Begin from a draw of the Gaussian posterior instead of its mean."""
    spread: bool = False
    """Use as many steps as the whole grid had, spaced by noise level below the start; else the grid is cut."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share < 1:
            raise LeaderError(f"The share that a late start may lose must lie between 0 and 1; found {self.share}.")
        if self.time is not None and not 0 <= self.time < 1000:
            raise LeaderError(f"The first time must lie between 0 and 999; found {self.time}.")

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        first = self.first(prior, problem)
        if not self.spread:
            return grid.cut(first)
        clock = prior.schedule.clock_of(first)
        return grid_on(prior.schedule, min(grid.visits, clock + 1), lambda count, total: noise_grid(count, total, clock))

    def first(self, prior: Prior, problem: Problem) -> int:
        """The first time, in the prior's schedule, of the one image of a problem."""
        if self.time is not None:
            return prior.schedule.at_clock(self.time)
        probe = torch.randint(0, 2, (1, *problem.image_shape), generator=torch.Generator().manual_seed(0)).to(problem.y) * 2 - 1
        _, posterior = _posterior(prior, problem)
        return informed_time(prior.schedule, *posterior.eigenvalues(probe, LANCZOS_STEPS), self.share)

    def origin(self, prior: Prior, problem: Problem, noise: Callable[[str], Tensor]) -> Tensor:
        origins = []
        for row in range(problem.batch):
            one = problem if problem.batch == 1 else problem.select(torch.tensor([row]))
            mean, posterior = _posterior(prior, one)
            if not self.draw:
                origins.append(posterior.mean(one.y, mean))
                continue
            white, other = noise("origin")[row : row + 1], noise("origin-noise")[row : row + 1]
            origins.append(posterior.draw(one.y, mean, white, _like_measurement(other, one)))
        return torch.cat(origins)


def informed_time(schedule: Schedule, values: Tensor, weights: Tensor, share: float) -> int:
    """The smallest time at which sum w p r^2 / (1 + r)^2 <= share sum w p, r = p / s_t^2; the last one if there is none."""
    allowed = share * float((weights * values).sum())
    low, high = 0, len(schedule) - 1
    while low < high:  # the loss falls with the noise, so halving finds the place
        middle = (low + high) // 2
        ratio = values / schedule.log_noise[middle].exp()
        if float((weights * values * (ratio / (1 + ratio)) ** 2).sum()) <= allowed:
            high = middle
        else:
            low = middle + 1
    return high


def _posterior(prior: Prior, problem: Problem) -> tuple[Tensor, Posterior]:
    """Mean of x0 and its covariance given y, for a problem of one image."""
    found = image_covariance(prior, torch.zeros(1, *problem.image_shape).to(problem.y))
    if found is None:
        raise LeaderError(
            f"The prior '{prior.name}' has no spectrum, which an informed start needs; fit it with 'leader fit-variance', "
            "or leave out the plug-in 'start'."
        )
    mean, covariance = found
    return mean, covariance.given(problem.operator, float(problem.sigma[0]))


def _like_measurement(white: Tensor, problem: Problem) -> Tensor:
    """Standard normal numbers in the shape of y: as many of those given, which are at least as many as entries of y."""
    shape = problem.y.shape
    count = problem.y[0].numel()
    if count > white[0].numel():
        raise LeaderError(f"A drawn start serves measurements no larger than the image; found {list(shape[1:])}.")
    return white.flatten(1)[:, :count].reshape(shape)
