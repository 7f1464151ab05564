"""The informed start: begin at the time above which the noise levels would add nothing to y.

For a Gaussian prior, P = Cov[x0 | y] with eigenvalues p and r = p / s_t^2: a run that begins at time t from E[x0 | y] and
fresh noise, N(sqrt(abar) m, (1 - abar) I), lacks the spread abar P of p(x_t | y). An exact ancestral sampler makes up for
most of it; what stays lost is sum p r^2 / (1 + r)^2 of the variance, and sum (r / (1 + r))^2 (m - E[x0 | y])^2 of the mean.
The start is the smallest time at which both are at most `share` of sum p. A drawn x0 ~ N(E[x0 | y], P) loses nothing on
Gaussian priors at any time.

The covariance is the prior's own Gaussian model (`leader.uncertainty.covariance`): exact for Gaussian priors, the fitted
spectrum of photographs otherwise. Nearest: CCDF, SDEdit and DiffPIR's t_start (a constant start), Flash-Diffusion (a start
by the severity of each sample).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.plugins.base import Plugin
from leader.plugins.informed import by_time, informed_time, open_variances, posterior_of
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid, grid_on, noise_grid


@dataclass(frozen=True)
class Start(Plugin):
    """Starts a run late, at the time down to which y determines everything, from the best estimate given y.

    >>> Start().name, Start.needs_sigma
    ('start', False)
    """

    name: ClassVar[str] = "start"
    summary: ClassVar[str] = "begins late, from an estimate by the measurement alone, if early steps would add nothing"
    paper: ClassVar[str] = "this project: docs/start.md"
    begins: ClassVar[bool] = True

    share: Annotated[float, "(0, 1)"] = 0.05
    """Share of the variance left open by y that a late start may lose."""
    time: Annotated[int | None, "[0, 999]"] = None
    """A constant first time of the standard clock instead of the rule."""
    draw: bool = False
    """Begin from a draw of the Gaussian posterior instead of its mean."""
    spread: bool = False
    """Use as many steps as the whole grid had, spaced by noise level below the start; else the grid is cut."""

    def grid(self, grid: Grid, prior: Prior, problem: Problem) -> Grid:
        first = self.first(prior, problem)
        if not self.spread:
            return grid.cut(first)
        clock = prior.schedule.clock_of(first)
        return by_time(
            grid_on(prior.schedule, min(grid.visits, clock + 1), lambda count, total: noise_grid(count, total, clock))
        )

    def first(self, prior: Prior, problem: Problem) -> int:
        """The first time, in the prior's schedule, of the one image of a problem."""
        if self.time is not None:
            return prior.schedule.at_clock(self.time)
        return informed_time(prior.schedule, *open_variances(prior, problem), self.share)

    def origin(self, prior: Prior, problem: Problem, noise: Callable[[str], Tensor]) -> Tensor:
        origins = []
        for row in range(problem.batch):
            one = problem if problem.batch == 1 else problem.select(torch.tensor([row]))
            mean, posterior = posterior_of(prior, one)
            if not self.draw:
                origins.append(posterior.mean(one.y, mean))
                continue
            white, other = noise("origin")[row : row + 1], noise("origin-noise")[row : row + 1]
            origins.append(posterior.draw(one.y, mean, white, _like_measurement(other, one)))
        return torch.cat(origins)


def _like_measurement(white: Tensor, problem: Problem) -> Tensor:
    """Standard normal numbers in the shape of y: as many of those given, which are at least as many as entries of y."""
    shape = problem.y.shape
    count = problem.y[0].numel()
    if count > white[0].numel():
        raise LeaderError(f"A drawn start serves measurements no larger than the image; found {list(shape[1:])}.")
    return white.flatten(1)[:, :count].reshape(shape)
