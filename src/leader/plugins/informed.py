"""What y leaves open under the prior's own Gaussian model: the numbers behind an informed start and informed pacing.

P = Cov[x0 | y] comes from `leader.uncertainty.covariance`: exact for Gaussian priors, the fitted spectrum of photographs
otherwise. Its eigenvalues p, weighted by one random probe (eight Lanczos products, once per run), are all that is needed: a
state x_t adds an observation of x0 with white noise of variance s_t^2, so that Cov[x0 | x_t, y] has the eigenvalues
p s_t^2 / (p + s_t^2).
"""

from dataclasses import replace

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.priors.base import Prior
from leader.problem import Problem
from leader.schedule import Grid, Schedule
from leader.uncertainty.covariance import Covariance, Posterior, image_covariance

LANCZOS_STEPS = 8
FIRST_LABEL = 1_000_000
"""Above every position: grids that are not a part of the host's own address their draws by time."""


def open_variances(prior: Prior, problem: Problem) -> tuple[Tensor, Tensor]:
    """(p, weights): the eigenvalues of Cov[x0 | y] of the one image of a problem, as far as one probe sees them."""
    probe = torch.randint(0, 2, (1, *problem.image_shape), generator=torch.Generator().manual_seed(0)).to(problem.y) * 2 - 1
    _, posterior = posterior_of(prior, problem)
    return posterior.eigenvalues(probe, LANCZOS_STEPS)


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


def model_of(prior: Prior, like: Tensor, need: str, plugin: str) -> tuple[Tensor, Covariance]:
    """Mean and covariance of the prior's Gaussian model of images like [1, C, H, W]; `need` of the `plugin` asks for it."""
    found = image_covariance(prior, like)
    if found is None:
        raise LeaderError(
            f"The prior '{prior.name}' has no spectrum, which {need} needs; fit it with 'leader fit-variance', "
            f"or leave out the plug-in '{plugin}'."
        )
    return found


def posterior_of(prior: Prior, problem: Problem) -> tuple[Tensor, Posterior]:
    """Mean of x0 and its covariance given y, for a problem of one image."""
    mean, covariance = model_of(prior, torch.zeros(1, *problem.image_shape).to(problem.y), "an informed start", "start")
    return mean, covariance.given(problem.operator, float(problem.sigma[0]))


def left_open(schedule: Schedule, values: Tensor, weights: Tensor) -> Tensor:
    """V(t) = tr Cov[x0 | x_t, y] at every time of a schedule, float64 [T], up to a factor: sum w p / (1 + p / s_t^2)."""
    noise = schedule.log_noise.exp().double()[:, None]
    p, w = values.double().clamp_min(0)[None], weights.double()[None]
    return (w * p * noise / (p + noise)).sum(1)


def by_time(grid: Grid) -> Grid:
    """The grid with draws addressed by time, so that grids that visit the same time share its draws."""
    return replace(grid, labels=tuple(FIRST_LABEL + time for time in grid.times))
