"""Proposition 4.2, as far as it is true.

As the paper states it the bound cannot fail (its constant is about 4e8) and its limit B -> 0 leaves the floor of the grid. What
holds on the probability flow of a Gaussian prior, whose exact solution is known: the discrete Gronwall inequality with measured
terms, first-order convergence in the number of steps, and an error that falls with B on a fine grid.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from leader import Problem, Sampler, operators
from leader.priors.gaussian import GaussianPrior
from leader.schedule import Schedule
from tests.oracle.cases import gaussian

SHAPE = (1, 4, 8)


def fine_prior(steps: int) -> GaussianPrior:
    """Four distinct variances under the linear schedule, refined to `steps` times of the same flow."""
    return gaussian("four", SHAPE, Schedule.linear(1e-4 * 1000 / steps, 2e-2 * 1000 / steps, steps))


def spread(prior: GaussianPrior, t: int) -> Tensor:
    abar = prior.schedule.abar(t)
    return abar * prior.gaussian.variances + 1 - abar


def flow(prior: GaussianPrior, x: Tensor, t: int, u: int) -> Tensor:
    """The exact probability flow from t to u."""
    before, after = prior.schedule.abar(t).sqrt(), prior.schedule.abar(u).sqrt()
    mean = prior.gaussian.mean
    return after * mean + (spread(prior, u) / spread(prior, t)).sqrt() * (x - before * mean)


def euler_gain(prior: GaussianPrior, t: int, u: int) -> Tensor:
    """The factor by which one DDIM step scales the deviation from the mean, per pixel."""
    now, after = prior.schedule.abar(t), prior.schedule.abar(u)
    total = spread(prior, t)
    return after.sqrt() * prior.gaussian.variances * now.sqrt() / total + (1 - after).sqrt() * (1 - now).sqrt() / total


def run(prior: GaussianPrior, steps: int, budget: float) -> tuple[float, list[tuple[int, int]], Tensor]:
    """Distance of the pruned sampler's end from the exact flow's, the moves it made, and its start."""
    start = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    problem = Problem.internal(torch.zeros(1, *SHAPE, dtype=torch.float64), operators.Denoising(SHAPE))
    sampler = Sampler(prior, "ddim", ("satp",), steps=steps, satp={"budget": budget, "eta": 4.0})
    result = sampler.run(problem, x_T=start)
    moves = [(visit.t, visit.u) for visit in result.trace[0]]
    truth = flow(prior, start, moves[0][0], -1)
    return float((result.images - truth).norm()), moves, start


@pytest.mark.parametrize("budget", [0.0, 0.001, 0.01, 0.05])
def test_discrete_gronwall_holds_and_is_tight(budget: float) -> None:
    prior = fine_prior(1000)
    error, moves, x = run(prior, 100, budget)
    bound = 0.0
    for t, u in moves:
        step = prior.schedule.abar(u).sqrt() * prior.gaussian.mean + euler_gain(prior, t, u) * (
            x - prior.schedule.abar(t).sqrt() * prior.gaussian.mean
        )
        exact = flow(prior, x, t, u)
        bound = float(euler_gain(prior, t, u).abs().max()) * bound + float((exact - step).norm())
        x = exact
    assert error <= bound * (1 + 1e-9)
    assert bound <= 2 * error


@pytest.mark.parametrize(
    "counts", [(50, 500), pytest.param((100, 1000, 10_000), marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_error_is_first_order_in_the_step(counts: tuple[int, ...]) -> None:
    prior = fine_prior(10_000)
    errors = [run(prior, steps, 0.0)[0] for steps in counts]
    for coarse, fine in pairwise(errors):
        assert 7.5 <= coarse / fine <= 12.5


@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_error_falls_with_the_budget_on_a_fine_grid(count: int) -> None:
    prior = fine_prior(10_000)
    errors = [run(prior, count, budget)[0] for budget in (0.1, 0.03, 0.01, 0.003, 0.0)]
    assert all(more > less for more, less in pairwise(errors))


def test_a_floor_remains_on_a_fixed_grid() -> None:
    prior = fine_prior(1000)
    floor = run(prior, 100, 0.0)[0]
    assert run(prior, 100, 1e-6)[0] == floor > 1e-3
