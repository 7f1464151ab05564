"""What methods say of themselves and the settings that only show in one step: costs, grids, travel, shares."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from leader import Grid, LeaderError, Problem, Sampler, operators
from leader.methods import DDNM, DDPG, DPS, METHODS, SITCOM, Estimate, State
from leader.methods.ddnm import DDNMState
from leader.methods.projdiff import ProjDiff, ProjDiffState
from leader.methods.sitcom import _choose
from leader.priors.base import Prediction
from leader.schedule import Schedule, travel_grid
from tests.methods.contexts import context
from tests.oracle.cases import gaussian

SHAPE = (1, 4, 4)


def noisy_problem(sigma: float = 0.3, count: int = 1) -> Problem:
    operator = operators.AveragePoolSR(SHAPE, 2)
    generator = torch.Generator().manual_seed(0)
    return Problem.internal(torch.randn(count, 1, 2, 2, generator=generator, dtype=torch.float64), operator, sigma)


@pytest.mark.parametrize("name", sorted(METHODS))
@pytest.mark.parametrize("sigma", [0.0, 0.2])
def test_the_announced_cost_is_what_the_ledger_counts(name: str, sigma: float) -> None:
    """Upper bounds, reached where nothing stops early: clean data in SITCOM, one time each."""
    settings: dict[str, Any] = {"inner": 4, "margin": 0.0} if name == "sitcom" else {}
    prior, steps = gaussian("white", SHAPE), 3
    sampler = Sampler(prior, name, (), steps, estimator=None, **settings)
    problem = noisy_problem(sigma)
    plan = sampler.plan(problem)
    total, cost = sampler.run(problem).ledger.total, plan.method.cost
    calls, backwards = cost.forward * plan.grid.visits + cost.start, cost.backward * plan.grid.visits
    if name == "sitcom" and sigma:
        assert total.calls <= calls and total.backwards <= backwards
    else:
        assert (total.calls, total.backwards) == (calls, backwards)


def test_ddnm_travels_when_told_to() -> None:
    schedule = Schedule.linear()
    grid = DDNM(travel_length=3, travel_repeats=2).default_grid(schedule, 10)
    assert grid == travel_grid(10, 3, 2) and any(b > a for a, b in zip(grid.times, grid.times[1:]))
    assert DDNM(travel_length=3).default_grid(schedule, 10).times == (*range(900, -1, -100), -1)
    assert DPS().default_grid(schedule, 10).times == (*range(999, -1, -111), -1), "from the very top, as its authors respace"


def test_travel_re_noises_the_unprojected_estimate_with_noise_of_its_own() -> None:
    problem, prior = noisy_problem(0.0), gaussian("four", SHAPE)
    here = context(prior, problem)
    x, x0_hat = torch.randn(1, *SHAPE, dtype=torch.float64), torch.zeros(1, *SHAPE, dtype=torch.float64)
    t, u = torch.tensor([300]), torch.tensor([200])
    prediction = here.ask(x, t)
    method = DDNM()
    state = method.advance(here, DDNMState(x, x), Estimate(x, prediction), x0_hat, t, u)
    assert torch.equal(state.x0, prediction.x0)
    up = method.travel(here, state, u, t)
    abar = float(prior.schedule.abar(300))
    expected = math.sqrt(abar) * prediction.x0 + math.sqrt(1 - abar) * here.noise("travel")
    assert torch.allclose(up.x, expected, atol=1e-6)
    assert not torch.allclose(here.noise("travel"), here.noise("step"))


@pytest.mark.parametrize("u", [20, 600])
def test_simple_ddnm_plus_in_both_branches(u: int) -> None:
    """lambda and gamma of the paper by hand: y cleaner than the state (u = 600), and noisier (u = 20)."""
    sigma, eta = 0.3, 0.85
    problem, prior = noisy_problem(sigma), gaussian("four", SHAPE)
    here, method = context(prior, problem), DDNM(form="simple", eta=eta)
    x = torch.randn(1, *SHAPE, dtype=torch.float64)
    t, to = torch.tensor([700]), torch.tensor([u])
    prediction = here.ask(x, t)
    abar = float(prior.schedule.abar(u))
    spread, carried = math.sqrt(1 - abar), math.sqrt(abar) * sigma
    assert (spread >= carried) == (u == 600)
    share = 1.0 if spread >= carried else spread / carried
    gamma = math.sqrt(spread**2 - carried**2) if spread >= carried else 0.0
    operator = problem.operator
    expected = prediction.x0 - share * operator.pinv(operator.A(prediction.x0) - problem.y)
    corrected = method.correct(here, State(x), Estimate(x, prediction), prediction.x0, t, to)
    assert torch.allclose(corrected, expected, atol=1e-6)
    state = method.advance(here, State(x), Estimate(x, prediction), corrected, t, to)
    noise = gamma * (eta * here.noise("step") + math.sqrt(1 - eta**2) * prediction.eps)
    assert torch.allclose(state.x, math.sqrt(abar) * corrected + noise, atol=1e-6)


@pytest.mark.parametrize(("mode", "zeta"), [(0, 0.3), (1, 0.3), (2, 0.3), (1, 0.0), (1, 1.0)])
def test_ddpgs_step_by_hand(mode: int, zeta: float) -> None:
    sigma, t, u = 0.3, 600, 500
    problem, prior = noisy_problem(sigma), gaussian("four", SHAPE)
    method = DDPG(gamma=0.5, zeta=zeta, eta_tilde=0.7, mode=mode, ls_scale=2.0)
    here = context(prior, problem)
    x = torch.randn(1, *SHAPE, dtype=torch.float64)
    now, after = float(prior.schedule.abar(t)), float(prior.schedule.abar(u))
    delta, decay = after**0.5, (1 - after) / (1 - now)
    back, least = {0: (1.0, 1.0), 1: (decay, decay), 2: (1.0, decay)}[mode]
    operator = problem.operator
    x0 = here.ask(x, torch.tensor([t])).x0
    residual = operator.A(x0) - problem.y
    inverse = operator.regularised_pinv(residual, 0.7 * sigma**2)
    expected = x0 - back * (1 - delta) * inverse - least * delta * 2.0 * operator.AT(residual)
    estimate = Estimate(x, Prediction(x0, x0))
    guided = method.correct(here, State(x), estimate, x0, torch.tensor([t]), torch.tensor([u]))
    assert torch.allclose(guided, expected, atol=1e-6)
    moved = method.advance(here, State(x), estimate, guided, torch.tensor([t]), torch.tensor([u])).x
    eps = (x - math.sqrt(now) * guided) / math.sqrt(1 - now)
    noise = math.sqrt(zeta) * here.noise("step") + delta * math.sqrt(1 - zeta) * eps
    assert torch.allclose(moved, math.sqrt(after) * guided + math.sqrt(1 - after) * noise, atol=1e-6)


def test_default_scales_and_costs() -> None:
    assert DPS().cost.backward == 1 and SITCOM(inner=7).cost.backward == 6 and SITCOM(inner=7).cost.forward == 7


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


def test_what_sitcom_overwrites_is_held_in_range() -> None:
    mask = torch.ones(4, 4)
    mask[0, 0] = 0
    y = torch.full((1, *SHAPE), 1.4, dtype=torch.float64)
    problem = Problem.internal(y, operators.Inpainting(SHAPE, mask), 0.3)
    here, x0, u = context(gaussian("white", SHAPE), problem), torch.full((1, *SHAPE), 0.2).double(), torch.tensor([10])
    nothing = Estimate(x0, Prediction(x0, x0))
    found = SITCOM(overwrite=True).correct(here, State(x0), nothing, x0, u, u)
    assert float(found[0, 0, 0, 0]) == pytest.approx(0.2) and bool((found[0, 0, 1:] == 1).all())
    assert torch.equal(SITCOM().correct(here, State(x0), nothing, x0, u, u), x0)


def test_a_selection_keeps_its_order_also_where_it_holds_all() -> None:
    x = torch.arange(3.0).reshape(3, 1, 1, 1)
    state = DDNMState(x, 10 + x)
    for order in ([2, 0, 1], [1], [0, 1, 2], [1, 1, 0]):
        chosen = state.select(torch.tensor(order))
        assert chosen.x.flatten().tolist() == order and (chosen.x0.flatten() - 10).tolist() == order
    problem = noisy_problem(count=3)
    turned = problem.select(torch.tensor([2, 1, 0]))
    assert torch.equal(turned.y, problem.y.flip(0))


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"ddnm", "repaint"}))
def test_methods_that_cannot_travel_say_so(name: str) -> None:
    sampler = Sampler(gaussian("white", SHAPE), name, (), grid=Grid((300, 200, 300, -1)), estimator=None)
    with pytest.raises(LeaderError, match=f"'{name}' has no time travel"):
        sampler.run(noisy_problem())


def test_ddnm_plus_is_refused_where_the_svd_is_not_known() -> None:
    operator = operators.FromFunctions(SHAPE, lambda x: 2 * x, lambda y: 2 * y)
    problem = Problem.internal(torch.zeros(1, *SHAPE), operator, 0.1)
    with pytest.raises(LeaderError, match="'custom' has no known SVD; use form 'simple' or 'auto'"):
        DDNM(form="spectral").check(problem)
    for form in ("auto", "simple", "plain"):
        DDNM(form=form).check(problem)


def test_images_that_have_stopped_keep_all_of_their_answer() -> None:
    def answer(value: float) -> Prediction:
        return Prediction(*(torch.full((2, *SHAPE), value + part) for part in (0.0, 0.1, 0.2)))

    chosen = _choose(torch.tensor([True, False]), answer(1.0), answer(5.0))
    assert chosen.variance is not None
    for part, (kept, newest) in zip(
        (chosen.x0, chosen.eps, chosen.variance), ((1.0, 5.0), (1.1, 5.1), (1.2, 5.2)), strict=True
    ):
        assert torch.allclose(part[0], torch.tensor(kept)) and torch.allclose(part[1], torch.tensor(newest))
