"""What methods say of themselves and the settings that only show in one step: costs, grids, travel, shares."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from leader import Grid, LeaderError, Problem, Sampler, operators
from leader.methods import DDNM, DPS, METHODS, DiffPIR, State
from leader.methods.ddnm import DDNMState
from leader.methods.diffpir import early_coarse_grid
from leader.methods.projdiff import ProjDiffState
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


def test_diffpir_stays_finite_for_tiny_rho() -> None:
    """Clean data at t = 999: rho is 4e-11, where the authors' closed form loses all digits in single precision."""
    prior = gaussian("correlated", (1, 16, 16))
    x = prior.sample(1, torch.Generator().manual_seed(2))
    operator = operators.BicubicSR((1, 16, 16), 4)
    single = Problem.internal(operator.A(x).float(), operator, 0.0)
    here, times, after = context(prior, single), torch.tensor([999]), torch.tensor([898])
    method = DiffPIR(lam=1.0)
    assert float(method.rho(here, times)) == pytest.approx(4.04e-11, rel=1e-2)
    estimate = method.estimate(here, State(x.float()), times)
    x = method.correct(here, State(x.float()), estimate, estimate.prediction.x0, times, after)
    assert float(single.residual(x).abs().max()) < 1e-5


def test_diffpir_grids_are_the_published_ones() -> None:
    twenty = (999, 770, 675, 602, 541, 487, 438, 393, 351, 311, 274, 239, 205, 172, 141, 111, 82, 54, 26, 0, -1)
    assert early_coarse_grid(20).times == twenty
    hundred = early_coarse_grid(100).times
    assert hundred[:6] == (999, 899, 857, 825, 798, 775) and hundred[-5:] == (15, 10, 5, 0, -1)
    thousand = early_coarse_grid(1000).times
    assert len(thousand) - 1 == 750 and list(thousand) == sorted(thousand, reverse=True)
