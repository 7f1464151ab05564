"""The loop: same bits alone and in any batch, images that leave, counted calls, injected noise, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Grid, LeaderError, Problem, Sampler, operators
from leader.priors.base import Prediction
from leader.priors.gaussian import GaussianPrior
from tests.oracle.cases import gaussian, mixture

SHAPE = (1, 16, 12)
HARD: dict[str, Any] = {"ucpm": {"lam": 0.3}, "satp": {"budget": 0.05, "eta": 4.0}}


def make_problem(count: int = 5, sigma: float = 0.0) -> Problem:
    prior = mixture(SHAPE)
    x = prior.sample(count, torch.Generator().manual_seed(4)).float()
    operator = operators.BicubicSR(SHAPE, 2)
    y = operator.A(x)
    return Problem.internal(y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(5)), operator, sigma)


@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_an_image_gives_the_same_bits_alone_and_in_any_order(sigma: float) -> None:
    problem, prior = make_problem(sigma=sigma), mixture(SHAPE)
    sampler = Sampler(prior, "ddnm", ("leader",), steps=30, **HARD)
    whole = sampler.run(problem, seed=3).images
    alone = sampler.run(problem.select(torch.tensor([2])), seed=3, ids=[2]).images
    order = [4, 2, 0, 3, 1]
    shuffled = sampler.run(problem.select(torch.tensor(order)), seed=3, ids=order).images
    assert torch.equal(alone[0], whole[2])
    assert torch.equal(shuffled, whole[order])


@pytest.mark.parametrize("method", ["ddim", "ddnm"])
@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_zero_strength_and_zero_budget_change_no_bit(method: str, sigma: float) -> None:
    problem, prior = make_problem(2, sigma), mixture(SHAPE)
    host = Sampler(prior, method, (), steps=20).run(problem).images
    idle = Sampler(prior, method, ("leader",), steps=20, ucpm={"lam": 0.0}, satp={"budget": 0.0})
    assert torch.equal(idle.run(problem).images, host)


def test_images_leave_when_they_are_done() -> None:
    problem, prior = make_problem(), mixture(SHAPE)
    sampler = Sampler(prior, "ddnm", ("satp",), steps=60, satp={"budget": 0.05, "eta": 4.0})
    result = sampler.run(problem)
    calls = [result.ledger.rows[i].calls for i in range(5)]
    assert len(set(calls)) > 1 and max(calls) < 60
    singles = [sampler.run(problem.select(torch.tensor([i])), ids=[i]).ledger.total for i in range(5)]
    assert result.ledger.total.calls == sum(one.calls for one in singles)
    assert result.ledger.total.pixels == sum(one.pixels for one in singles)
    assert [len(result.trace[i]) for i in range(5)] == calls


def test_batched_evaluation_agrees() -> None:
    problem, prior = make_problem(), mixture(SHAPE)
    sampler = Sampler(prior, "ddnm", ("leader",), steps=30, **HARD)
    one_by_one = sampler.run(problem)
    prior.one_by_one = False
    batched = sampler.run(problem)
    assert torch.allclose(one_by_one.images, batched.images, atol=1e-4)
    assert batched.ledger.rows == one_by_one.ledger.rows


def test_steps_tell_the_whole_story() -> None:
    problem, prior = make_problem(2), mixture(SHAPE)
    sampler = Sampler(prior, "ddnm", ("leader",), steps=25, **HARD)
    seen = list(sampler.iterate(problem))
    assert seen[0].t.tolist() == [960, 960] and int(seen[-1].u.max()) == -1
    for step in seen:
        assert step.sigma is not None and step.U is not None
        assert torch.allclose(step.sigma.mean((1, 2, 3)), step.U)
    last_times = {name: int(t) for step in seen for name, t in zip(step.ids, step.t)}
    assert set(last_times.values()) == {0}, "the last time of the grid is always visited"


def test_time_travel_calls_and_consistency() -> None:
    problem, prior = make_problem(1), mixture(SHAPE)
    sampler = Sampler(prior, "ddnm", (), steps=20, travel_length=4, travel_repeats=3)
    result = sampler.run(problem)
    assert result.ledger.total.calls == sampler.plan(problem).grid.visits > 20
    assert float((problem.operator.A(result.images) - problem.y).abs().max()) < 1e-5


def test_pruning_never_leaves_a_descending_run() -> None:
    problem, prior = make_problem(1), mixture(SHAPE)
    sampler = Sampler(prior, "ddnm", ("satp",), steps=20, travel_length=4, travel_repeats=2, satp={"budget": 10.0})
    moves = [(visit.t, visit.u) for visit in sampler.run(problem).trace[0]]
    assert moves == [(950, 600), (800, 400), (600, 200), (400, 0), (200, 0), (0, -1)]


def test_start_and_noise_can_be_injected() -> None:
    problem, prior = make_problem(2, 0.1), mixture(SHAPE)
    start = torch.randn(2, *SHAPE)

    def silent(ids: Sequence[int], positions: Sequence[int], name: str, shape: Sequence[int]) -> Tensor:
        return torch.zeros(len(ids), *shape)

    first = Sampler(prior, "ddnm", (), steps=10).run(problem, seed=1, x_T=start, noise=silent).images
    second = Sampler(prior, "ddnm", (), steps=10).run(problem, seed=2, x_T=start, noise=silent).images
    other = Sampler(prior, "ddnm", (), steps=10).run(problem, seed=2, x_T=start).images
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_a_gaussian_prior_pulls_towards_the_posterior_mean() -> None:
    """DDNM+ is no exact posterior sampler, but its draws must scatter around the exact posterior mean."""
    prior = gaussian("correlated", (1, 8, 8))
    operator = operators.AveragePoolSR((1, 8, 8), 2)
    x = prior.gaussian.sample(1, torch.Generator().manual_seed(0)).float()
    count = 200
    problem = Problem.internal(operator.A(x).expand(count, -1, -1, -1).contiguous(), operator, 0.05)
    prior.one_by_one = False
    draws = Sampler(prior, "ddnm", (), steps=50).run(problem).images
    mean, _ = prior.posterior(operator, problem.y[0], 0.05)
    prior_distance = float((prior.gaussian.mean - x).norm())
    assert float((draws.mean(0) - mean).norm()) < 0.25 * prior_distance


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "dnnm"}, "did you mean 'ddnm'"),
        ({"plugins": ("leeder",)}, "did you mean 'leader'"),
        ({"method": "ddnm", "zeta": 1.0}, "no setting 'zeta'"),
    ],
)
def test_wrong_names_are_refused_with_a_hint(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LeaderError, match=message):
        Sampler(gaussian("white", SHAPE), **arguments)


def test_wrong_problems_are_refused() -> None:
    operator = operators.Denoising(SHAPE)
    with pytest.raises(LeaderError, match="NaN"):
        Problem(torch.full((1, *SHAPE), float("nan")), operator)
    with pytest.raises(LeaderError, match="noise level"):
        Problem(torch.zeros(1, *SHAPE), operator, -0.1)
    with pytest.raises(LeaderError, match="share a batch"):
        Problem(torch.zeros(2, *SHAPE), operator, torch.tensor([0.0, 0.1]))


def test_problem_converts_ranges_once() -> None:
    operator = operators.AveragePoolSR(SHAPE, 2)
    picture = torch.rand(1, *SHAPE)
    problem = Problem(operator.A(picture), operator, 0.05)
    assert torch.allclose(problem.y, operator.A(2 * picture - 1), atol=1e-6)
    assert float(problem.sigma) == pytest.approx(0.1)


def test_divergence_is_an_error_not_a_picture() -> None:
    class Broken(GaussianPrior):
        def _predict(self, x: Tensor, t: Tensor) -> Prediction:
            return super()._predict(x * float("inf"), t)

    problem = make_problem(1)
    with pytest.raises(LeaderError, match="diverged"):
        Sampler(Broken(gaussian("white", SHAPE).gaussian), "ddnm", (), steps=3).run(problem)


def test_custom_grid() -> None:
    problem, prior = make_problem(1), mixture(SHAPE)
    result = Sampler(prior, "ddnm", (), grid=Grid((900, 500, 100, 10, 0, -1))).run(problem)
    assert [visit.t for visit in result.trace[0]] == [900, 500, 100, 10, 0]
