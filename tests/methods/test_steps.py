"""What methods say of themselves and the settings that only show in one step: costs, grids, travel, shares."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from leader import Grid, LeaderError, Problem, Sampler, operators
from leader.methods import DDNM, DPS, METHODS, Estimate
from leader.methods.ddnm import DDNMState
from leader.methods.projdiff import ProjDiff, ProjDiffState
from leader.priors.base import Prediction
from leader.schedule import Schedule, travel_grid
from tests.methods.contexts import context
from tests.oracle.cases import gaussian

SHAPE = (1, 4, 4)


def noisy_problem(sigma: float = 0.3, count: int = 1) -> Problem:
    operator = operators.AveragePoolSR(SHAPE, 2)
    generator = torch.Generator().manual_seed(0)
    return Problem.internal(torch.randn(count, 1, 2, 2, generator=generator, dtype=torch.float64), operator, sigma)


def test_ddnm_travels_when_told_to() -> None:
    schedule = Schedule.linear()
    grid = DDNM(travel_length=3, travel_repeats=2).default_grid(schedule, 10)
    assert grid == travel_grid(10, 3, 2) and any(b > a for a, b in zip(grid.times, grid.times[1:]))
    assert DDNM(travel_length=3).default_grid(schedule, 10).times == (*range(900, -1, -100), -1)
    assert DPS().default_grid(schedule, 10).times == (*range(999, -1, -111), -1), "from the very top, as its authors respace"


def test_ddrm_travels_when_told_to_and_stays_as_near_to_the_posterior() -> None:
    """Off: the bits of the plain grid. On: the calls of the grid. Mean of many runs: no farther from the exact one."""
    prior, count = gaussian("white", SHAPE), 96
    problem = noisy_problem().select(torch.zeros(count, dtype=torch.long))
    plain = Sampler(prior, "ddrm", (), 20, use_presets=False, estimator=None).run(problem, seed=3)
    off = Sampler(prior, "ddrm", (), 20, use_presets=False, estimator=None, travel_length=4).run(problem, seed=3)
    assert torch.equal(plain.images, off.images)
    sampler = Sampler(prior, "ddrm", (), 20, use_presets=False, estimator=None, travel_length=4, travel_repeats=3)
    on = sampler.run(problem, seed=3)
    assert on.ledger.total.calls == count * (20 + 4 * 2 * 4), "four turns (indices 0, 4, 8, 12), each twice, four steps"
    mean, covariance = prior.posterior(problem.operator, problem.y[:1], 0.3)
    far = [float((images.mean(0) - mean.reshape(SHAPE)).norm()) for images in (plain.images, on.images)]
    assert far[1] < far[0] + 3 * float(covariance.trace() / count) ** 0.5, "three standard errors of a mean of so many"


@pytest.mark.parametrize("sigma", [0.0, 0.1])
@pytest.mark.parametrize("name", [name for name, cls in METHODS.items() if cls.takes_origin])
def test_a_known_origin_is_taken_to_the_noise_of_the_first_time(name: str, sigma: float) -> None:
    """x = sqrt(abar) origin + sqrt(1 - abar) z, whatever the method would start from otherwise."""
    prior, problem = gaussian("white", SHAPE), noisy_problem(sigma)
    origin = torch.full((1, *SHAPE), 0.3, dtype=torch.float64)
    here = replace(context(prior, problem), origin=origin)
    t = torch.tensor([300])
    abar = float(prior.schedule.abar(300))
    state = METHODS[name]().start(here, t)
    expected = abar**0.5 * origin + (1 - abar) ** 0.5 * here.noise("start")
    assert torch.allclose(state.x, expected, atol=1e-6)
    if isinstance(state, ProjDiffState):
        assert torch.equal(state.x0, origin), "the clean variable is the origin itself"


def test_over_relaxed_projdiff_ends_with_what_is_measured_of_the_estimate() -> None:
    """On the way all components go beyond the estimate; at the end those that y knows well do not."""
    mask = torch.ones(4, 4)
    mask[0] = 0
    y = torch.zeros(1, *SHAPE, dtype=torch.float64)
    problem = Problem.internal(y, operators.Inpainting(SHAPE, mask), 1e-3)
    here, method = context(gaussian("white", SHAPE), problem), ProjDiff(early_step=1.5)
    x0, hat = torch.zeros(1, *SHAPE).double(), torch.full((1, *SHAPE), 0.2).double()
    state, nothing = ProjDiffState(x0, x0, x0), Estimate(x0, Prediction(x0, x0))
    for u, measured in ((10, 0.3), (-1, 0.2)):
        moved = method.advance(here, state, nothing, hat, torch.tensor([100]), torch.tensor([u]))
        assert isinstance(moved, ProjDiffState)
        assert torch.allclose(moved.x0[..., 0, :], torch.tensor(0.3).double(), atol=1e-7), "nothing is known of the first row"
        assert torch.allclose(moved.x0[..., 1:, :], torch.tensor(measured).double(), atol=1e-7)


def test_a_selection_keeps_its_order_also_where_it_holds_all() -> None:
    x = torch.arange(3.0).reshape(3, 1, 1, 1)
    state = DDNMState(x, 10 + x)
    for order in ([2, 0, 1], [1], [0, 1, 2], [1, 1, 0]):
        chosen = state.select(torch.tensor(order))
        assert chosen.x.flatten().tolist() == order and (chosen.x0.flatten() - 10).tolist() == order
    problem = noisy_problem(count=3)
    turned = problem.select(torch.tensor([2, 1, 0]))
    assert torch.equal(turned.y, problem.y.flip(0))


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"ddnm", "ddrm", "repaint"}))
def test_methods_that_cannot_travel_say_so(name: str) -> None:
    sampler = Sampler(gaussian("white", SHAPE), name, (), grid=Grid((300, 200, 300, -1)), estimator=None)
    with pytest.raises(LeaderError, match=f"'{name}' does not support time travel"):
        sampler.run(noisy_problem())


def test_ddnm_plus_is_refused_where_the_svd_is_not_known() -> None:
    operator = operators.FromFunctions(SHAPE, lambda x: 2 * x, lambda y: 2 * y)
    problem = Problem.internal(torch.zeros(1, *SHAPE), operator, 0.1)
    with pytest.raises(LeaderError, match="'custom' has no known SVD; use form 'simple' or 'auto'"):
        DDNM(form="spectral").check(problem)
    for form in ("auto", "simple", "plain"):
        DDNM(form=form).check(problem)
