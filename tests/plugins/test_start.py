"""The informed start against dense algebra, on Gaussian priors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from leader import Grid, Problem, Sampler
from leader.methods import METHODS
from leader.operators import (
    BicubicSR,
    Blur,
    Inpainting,
    LinearOperator,
    gaussian_kernel,
    random_mask,
)
from leader.plugins import Start
from leader.plugins.informed import by_time, informed_time
from leader.priors.gaussian import GaussianPrior, stationary
from leader.schedule import Schedule, uniform_grid

SHAPE = (3, 8, 8)
SIGMA = 0.1


def hole(side: int) -> torch.Tensor:
    mask = torch.ones(8, 8)
    mask[:side, :side] = 0
    return mask


OPERATORS: dict[str, LinearOperator] = {
    "sr": BicubicSR(SHAPE, 2),
    "blur": Blur(SHAPE, gaussian_kernel(1.0)),
    "inpaint": Inpainting(SHAPE, random_mask(8, 8, 0.5, 1)),
}


def problem_of(operator: LinearOperator, sigma: float = SIGMA, seed: int = 0) -> Problem:
    x = stationary(SHAPE, 0.5).sample(1, torch.Generator().manual_seed(seed))
    y = operator.A(x)
    return Problem.internal(
        y + sigma * torch.randn(y.shape, generator=torch.Generator().manual_seed(9)).double(), operator, sigma
    )


def lost(schedule: Schedule, values: torch.Tensor, t: int) -> float:
    abar = float(schedule.abar(t))
    r = values * abar / (1 - abar)
    return float((values * r**2 / (1 + r) ** 2).sum() / values.sum())


@pytest.mark.parametrize("name", OPERATORS)
def test_the_time_is_that_of_dense_algebra(name: str) -> None:
    prior, problem = GaussianPrior(stationary(SHAPE, 0.5)), problem_of(OPERATORS[name])
    _, cov = prior.gaussian.posterior(problem.operator, problem.y[0], SIGMA)
    values = torch.linalg.eigvalsh(cov).clamp_min(0)
    exact = informed_time(prior.schedule, values, torch.ones_like(values), 0.05)
    assert lost(prior.schedule, values, exact) <= 0.05 < lost(prior.schedule, values, exact - 1)
    # one probe over 192 coordinates sees the spectrum to some ten per cent, and s_t^2 doubles within 60 times there
    assert abs(Start().first(prior, problem) - exact) <= 40
    assert Start(share=0.3).first(prior, problem) < Start().first(prior, problem) < Start(share=0.005).first(prior, problem)
    spread = Start(spread=True).grid(uniform_grid(20), prior, problem)
    assert spread.labels == by_time(spread).labels, "draws belong to times"


def test_a_cut_grid_keeps_times_draws_and_never_rises() -> None:
    whole = uniform_grid(100)
    short = whole.cut(175)
    assert short.times[:3] == (180, 170, 160) and short.labels[0] == whole.times.index(180) and short.times[-1] == -1
    travelling = Grid((900, 500, 300, 500, 300, 100, 0, -1)).cut(250)
    assert max(travelling.times) == 300 and travelling.times == (300, 100, 0, -1)
    assert whole.cut(2000).times == whole.times


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sigma", [0.0, SIGMA])
def test_every_host_begins_late_and_none_gets_worse(method: str, sigma: float) -> None:
    """Only DPS and MCG, whose scale is tuned to whole paths, begin at the top; calls are those of the cut grid."""
    prior = GaussianPrior(stationary(SHAPE, 0.5))
    truth = stationary(SHAPE, 0.5).sample(1, torch.Generator().manual_seed(0))
    problem = problem_of(OPERATORS["sr"], sigma)
    settings: dict[str, Any] = {"inner": 3} if method == "sitcom" else {}
    runs = {
        name: Sampler(prior, method, plugins, 25, estimator=None, use_presets=False, **settings).run(problem)
        for name, plugins in (("whole", ()), ("late", (Start(),)))
    }
    late, whole = runs["late"].ledger.total.calls, runs["whole"].ledger.total.calls
    first = runs["late"].trace[0][0].t
    if not METHODS[method].takes_origin:
        assert late == whole and torch.equal(runs["late"].images, runs["whole"].images)
        return
    assert late < whole and first < 500
    errors = {name: float((run.images - truth).square().mean()) for name, run in runs.items()}
    if method != "ddim":  # which looks at no data, so a start that does can only help
        assert errors["late"] < 1.35 * errors["whole"]


def test_images_of_a_batch_begin_at_their_own_times() -> None:
    prior = GaussianPrior(stationary(SHAPE, 0.5))
    masks = torch.stack([hole(1), hole(7)])[:, None]
    x = stationary(SHAPE, 0.5).sample(2, torch.Generator().manual_seed(0))
    operator = Inpainting(SHAPE, masks)
    both = Problem.internal(operator.A(x), operator)
    result = Sampler(prior, "ddnm", (Start(),), 50, use_presets=False).run(both)
    small, large = (result.trace[i][0].t for i in (0, 1))
    assert small < large
    for row in (0, 1):
        alone = Sampler(prior, "ddnm", (Start(),), 50, use_presets=False).run(both.select(torch.tensor([row])), ids=[row])
        assert torch.equal(alone.images[0], result.images[row])
