"""Informed pacing and the Wiener factor against dense algebra, on Gaussian priors with correlated pixels."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from leader import Grid, LeaderError, Sampler
from leader.operators import BicubicSR, Blur, gaussian_kernel
from leader.plugins import Pace, Start, Wiener
from leader.plugins.informed import left_open, open_variances
from leader.plugins.pace import even_times
from leader.plugins.wiener import component_variances
from leader.priors.base import Prior
from leader.priors.gaussian import GaussianPrior, stationary
from leader.schedule import quadratic_grid, uniform_grid
from tests.plugins.test_start import OPERATORS, SHAPE, SIGMA, problem_of


def prior_of() -> GaussianPrior:
    return GaussianPrior(stationary(SHAPE, 0.5))


@pytest.mark.parametrize("name", OPERATORS)
def test_what_is_left_open_is_the_trace_of_dense_algebra(name: str) -> None:
    prior, problem = prior_of(), problem_of(OPERATORS[name])
    _, cov = prior.gaussian.posterior(problem.operator, problem.y[0], SIGMA)
    values = torch.linalg.eigvalsh(cov).clamp_min(0)
    found = left_open(prior.schedule, values, torch.ones_like(values))
    for t in (0, 50, 300, 999):
        abar = float(prior.schedule.abar(t))
        given_both = torch.linalg.inv(torch.linalg.inv(cov) + torch.eye(len(cov)) * abar / (1 - abar))
        assert float(found[t]) == pytest.approx(float(given_both.trace()), rel=1e-6)
    assert (found.diff() >= 0).all() and float(found[999]) <= float(values.sum())
    # one probe weighs the eigenvalues at random: V relative to its top is seen to some ten per cent
    seen = left_open(prior.schedule, *open_variances(prior, problem))
    assert torch.allclose(seen / seen[-1], found / found[-1], atol=0.1)


def test_times_spend_a_density_evenly() -> None:
    assert even_times(torch.ones(100), 5) == (100, 75, 50, 25, 0)
    early = torch.cat([torch.full((50,), 0.01), torch.ones(50)])  # the lower half has little to learn
    times = even_times(early, 6)
    assert times[0] == 100 and times[-1] == 0 and sum(t > 50 for t in times) >= 5
    crowded = even_times(torch.cat([torch.ones(2), torch.zeros(8)]), 11)
    assert crowded == tuple(range(10, -1, -1))
    assert even_times(torch.ones(7), 1) == (7,)


def test_pacing_keeps_the_first_time_and_the_calls_and_spends_v_evenly() -> None:
    prior, problem = prior_of(), problem_of(OPERATORS["sr"])
    grid = Pace().grid(quadratic_grid(12), prior, problem)
    assert grid.times[0] == 999 and grid.times[-2:] == (0, -1) and grid.visits == 12
    v = left_open(prior.schedule, *open_variances(prior, problem))
    drops = torch.tensor([float(v[now] - v[after]) for now, after in pairwise(grid.times[:-1])])
    uniform = uniform_grid(12).times
    plain = torch.tensor([float(v[now] - v[max(after, 0)]) for now, after in pairwise(uniform)])
    assert float(drops.std() / drops.mean()) < 0.1 < float(plain.std() / plain.mean())
    other = Pace(power=0.0).grid(quadratic_grid(12), prior, problem)
    noise = prior.schedule.log_noise[list(other.times[:6])].diff()
    assert torch.allclose(noise, noise.mean(), rtol=0.15)  # equal steps of log noise, up to whole times
    shared = set(zip(grid.times, grid.labels)) & set(zip(other.times, other.labels))
    assert {time for time, _ in shared} == set(grid.times) & set(other.times)  # draws belong to times, not positions


def test_pacing_follows_a_late_start_and_refuses_travel() -> None:
    prior, problem = prior_of(), problem_of(OPERATORS["sr"])
    plan = Sampler(prior, "ddnm", (Start(time=300), Pace()), 20, use_presets=False).plan(problem)
    assert plan.grid.times[0] == Start(time=300).grid(uniform_grid(20), prior, problem).times[0] == 300
    assert plan.grid.visits == 7
    with pytest.raises(LeaderError, match="only descend"):
        Pace().grid(Grid((900, 500, 900, 500, -1)), prior, problem)
    with pytest.raises(LeaderError, match="power"):
        Pace(power=1.5)


def test_what_needs_a_spectrum_says_so() -> None:
    class Plain(Prior):
        name = "plain"

    problem, x = problem_of(Blur(SHAPE, gaussian_kernel(1.0))), torch.zeros(1, *SHAPE)
    with pytest.raises(LeaderError, match="'plain' has no spectrum"):
        Pace().grid(quadratic_grid(5), Plain(prior_of().schedule), problem)
    with pytest.raises(LeaderError, match="'plain' has no spectrum"):
        Wiener().settle(x, x, Plain(prior_of().schedule), problem)


def test_the_variance_of_a_component_is_about_the_mean() -> None:
    grey, bright = (GaussianPrior(stationary(SHAPE, 0.5, mean=mean)) for mean in (0.0, 0.7))
    operator = BicubicSR(SHAPE, 2)
    assert torch.allclose(component_variances(bright, operator, SHAPE), component_variances(grey, operator, SHAPE))
    waves = component_variances(grey, Blur(SHAPE, torch.ones(1, 1)), SHAPE)  # 64 draws: a mean of 192 ratios to 1.3 %
    assert float((waves / grey.gaussian.variances).mean()) == pytest.approx(1, abs=0.1)
