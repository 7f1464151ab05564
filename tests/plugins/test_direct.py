"""Direct denoising against the exact posterior mean of Gaussian priors."""

from itertools import pairwise

import pytest
import torch

from leader import Problem, Sampler
from leader.operators import Blur, Denoising, gaussian_kernel
from leader.plugins import Direct
from leader.priors.gaussian import GaussianPrior, stationary
from leader.schedule import Schedule, uniform_grid
from tests.cheap_prior import CheapPrior

SHAPE = (3, 16, 16)


def noisy(sigma: float, seed: int = 0) -> Problem:
    x = stationary(SHAPE, 0.5).sample(1, torch.Generator().manual_seed(seed))
    y = x + sigma * torch.randn(x.shape, generator=torch.Generator().manual_seed(9)).double()
    return Problem.internal(y.float(), Denoising(SHAPE), sigma)


@pytest.mark.parametrize("sigma", [0.02, 0.2, 0.9])
def test_one_call_is_the_posterior_mean(sigma: float) -> None:
    """Also where the noise of y is above all times that are visited before: there nothing is drawn."""
    prior, problem = GaussianPrior(stationary(SHAPE, 0.5)), noisy(sigma)
    mean, covariance = prior.gaussian.posterior(problem.operator, problem.y[0], sigma)
    for before in ((), (200, 120)):
        plugin = Direct(calls=1, before=before)
        run = Sampler(prior, "ddnm", plugin, 21, eta=0.0, estimator=None, use_presets=False).run(problem)
        error = float((run.images[0].double() - mean).square().mean().sqrt())
        # the nearest time below has up to 2 % less noise, a quarter less at 0.02, where times lie far apart
        assert error <= (0.3 if sigma == 0.02 else 0.05) * float(covariance.diagonal().mean().sqrt())
        assert run.ledger.total.calls == 1 + (3 if before and sigma < 0.3 else len(before) // 2)


def test_other_operators_and_clean_data_are_left_alone() -> None:
    prior = GaussianPrior(stationary(SHAPE, 0.5))
    blurred = Problem.internal(torch.zeros(1, *SHAPE), Blur(SHAPE, gaussian_kernel(1.0)), 0.1)
    clean = Problem.internal(torch.zeros(1, *SHAPE), Denoising(SHAPE), 0.0)
    for problem in (blurred, clean):
        sampler = Sampler(prior, "ddnm", Direct(), 5, use_presets=False)
        grid = Sampler(prior, "ddnm", (), 5, use_presets=False).plan(problem).grid
        assert sampler.plan(problem).grid.times == grid.times
        assert Direct().origin(prior, problem, lambda name: torch.zeros(1, *SHAPE)) is None


def test_times_fall_from_those_before_to_the_noise_level_and_the_end() -> None:
    prior, problem = GaussianPrior(stationary(SHAPE, 0.5)), noisy(0.1)
    times = Sampler(prior, "ddnm", Direct(calls=3), 21, use_presets=False).plan(problem).grid.times
    assert times[:2] == (200, 120) and times[-2:] == (0, -1) and len(times) == 7
    assert float(prior.schedule.log_noise[times[3]].exp().sqrt()) == pytest.approx(0.1, rel=0.03)
    assert float(prior.schedule.log_noise[times[3]].exp().sqrt()) <= 0.1


def test_its_clock_is_the_standard_one_on_every_schedule() -> None:
    prior = GaussianPrior(stationary(SHAPE, 0.5), Schedule.cosine(300))
    grid = Sampler(prior, "ddnm", Direct(calls=3), 21, use_presets=False).plan(noisy(0.1)).grid
    assert all(abs(found - expected) <= 4 for found, expected in zip(grid.clock, (200, 120))) and grid.clock[-1] == -1
    assert grid.times[0] != grid.clock[0]


def times_of(plugin: Direct, sigma: float) -> tuple[int, ...]:
    problem = Problem.internal(torch.zeros(1, 1, 2, 3), Denoising((1, 2, 3)), sigma)
    return plugin.grid(uniform_grid(21), CheapPrior(), problem).times


def test_times_fall_strictly_at_every_noise_level() -> None:
    """Also where times lie so far apart that the noise of the picture is nearest to the first one of all."""
    level = (0.5 * Schedule.linear().log_noise).exp()
    for sigma in torch.logspace(-3, 0.7, 60).tolist():
        times = times_of(Direct(calls=3), sigma)
        assert all(after < now for now, after in pairwise(times)) and times[-1] == -1, (sigma, times)
        own = times_of(Direct(calls=1, before=()), sigma)[0]
        assert own == 0 or float(level[own]) <= sigma < float(level[own + 1]), sigma
    assert times_of(Direct(calls=1, before=()), 0.97 * float(level[1]))[0] == 0, "the second time would be too noisy"
