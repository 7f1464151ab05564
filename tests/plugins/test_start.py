"""The informed start against dense algebra, on Gaussian priors."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from leader import Grid, LeaderError, Problem, Sampler
from leader.methods import METHODS
from leader.operators import (
    BicubicSR,
    Blur,
    Denoising,
    FromFunctions,
    Inpainting,
    LinearOperator,
    gaussian_kernel,
    random_mask,
)
from leader.plugins import Start
from leader.plugins.informed import informed_time
from leader.plugins.start import _like_measurement
from leader.priors.base import Prior
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


def test_later_with_more_noise_a_larger_hole_and_a_smaller_share() -> None:
    prior = GaussianPrior(stationary(SHAPE, 0.5))
    noise = [Start().first(prior, problem_of(Denoising(SHAPE), sigma)) for sigma in (0.05, 0.1, 0.3, 1.0)]
    holes = [Start().first(prior, problem_of(Inpainting(SHAPE, hole(side)))) for side in (1, 3, 5, 7)]
    shares = [Start(share=share).first(prior, problem_of(OPERATORS["sr"])) for share in (0.5, 0.1, 0.01)]
    for times in (noise, holes, shares):
        assert times == sorted(times) and times[0] < times[-1]


def test_what_an_ancestral_sampler_loses_by_a_late_start() -> None:
    """Scalar, exact: variance p (1 + 2r) / (1 + r)^2 and a mean error of r / (1 + r) are left at the end."""
    p, abar = 0.2, 0.4
    s2 = (1 - abar) / abar
    r = p / s2
    # of x_t / sqrt(abar) ~ N(m, v) an exact sampler makes x0 with mean mu + k (m - mu), k = p / (p + s2), and this variance
    k, left = p / (p + s2), p * s2 / (p + s2)
    assert left + k**2 * s2 == pytest.approx(p * (1 + 2 * r) / (1 + r) ** 2)  # started with v = s2 instead of p + s2
    assert k == pytest.approx(r / (1 + r))
    assert p - (left + k**2 * s2) == pytest.approx(p * r**2 / (1 + r) ** 2)


def test_a_drawn_start_has_the_law_of_x_t_given_y() -> None:
    prior = GaussianPrior(stationary(SHAPE, 0.5))
    problem = problem_of(OPERATORS["inpaint"])
    mean, cov = prior.gaussian.posterior(problem.operator, problem.y[0], SIGMA)
    count = 400
    generator = torch.Generator().manual_seed(4)
    draws = {
        name: torch.randn(count, *SHAPE, generator=generator, dtype=torch.float64)
        for name in ("origin", "origin-noise", "start")
    }
    many = Problem.internal(problem.y.expand(count, *SHAPE), problem.operator, SIGMA)
    origin = Start(draw=True).origin(prior, many, lambda name: draws[name])
    abar = float(prior.schedule.abar(150))
    x = (math.sqrt(abar) * origin + math.sqrt(1 - abar) * draws["start"]).reshape(count, -1)
    std = (abar * cov.diagonal() + 1 - abar).sqrt()
    assert float(((x.mean(0) - math.sqrt(abar) * mean.flatten()).abs() / std).max()) < 5 / math.sqrt(count)
    assert float((x.var(0) / std**2 - 1).abs().max()) < 5.5 * math.sqrt(2 / count)
    plain = Start().origin(prior, problem, lambda name: draws[name][:1])
    assert torch.allclose(plain[0], mean, atol=2e-3)


def test_a_cut_grid_keeps_times_draws_and_never_rises() -> None:
    whole = uniform_grid(100)
    short = whole.cut(175)
    assert short.times[:3] == (180, 170, 160) and short.labels[0] == whole.times.index(180) and short.times[-1] == -1
    travelling = Grid((900, 500, 300, 500, 300, 100, 0, -1)).cut(250)
    assert max(travelling.times) == 300 and travelling.times == (300, 100, 0, -1)
    assert whole.cut(2000).times == whole.times


def test_a_late_run_sees_the_noise_of_the_whole_one() -> None:
    prior, problem = GaussianPrior(stationary(SHAPE, 0.5)), problem_of(OPERATORS["sr"])
    seen: dict[str, list[tuple[int, str]]] = {"whole": [], "late": []}

    def watching(name: str) -> object:
        from leader.noise import SeededNoise

        def noise(ids: object, positions: object, what: str, shape: object) -> torch.Tensor:
            seen[name].append((positions[0], what))  # type: ignore[index]
            return SeededNoise(0)(ids, positions, what, shape)  # type: ignore[arg-type]

        return noise

    for name, plugins in (("whole", ()), ("late", (Start(time=200),))):
        Sampler(prior, "ddnm", plugins, 20, use_presets=False).run(problem, noise=watching(name))  # type: ignore[arg-type]
    steps = {name: {address for address in found if address[1] == "step"} for name, found in seen.items()}
    assert steps["late"] < steps["whole"] and len(steps["late"]) == 5


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


def test_spread_uses_all_steps_below_the_start() -> None:
    prior, problem = GaussianPrior(stationary(SHAPE, 0.5)), problem_of(OPERATORS["sr"])
    plan = Sampler(prior, "ddnm", (Start(time=200, spread=True),), 15, use_presets=False).plan(problem)
    assert (
        plan.grid.times[0] == 200 and plan.grid.visits == 15 and list(plan.grid.times) == sorted(plan.grid.times, reverse=True)
    )


def test_a_prior_without_a_spectrum_and_wrong_settings_are_told() -> None:
    class Plain(Prior):
        name = "plain"

    with pytest.raises(LeaderError, match="no spectrum"):
        Start().first(Plain(Schedule.linear()), problem_of(OPERATORS["sr"]))
    cases: tuple[dict[str, Any], ...] = ({"share": 0.0}, {"share": 1.0}, {"time": 1000}, {"time": -1})
    for wrong in cases:
        with pytest.raises(LeaderError):
            Start(**wrong)


def test_a_drawn_start_refuses_measurements_larger_than_the_image() -> None:
    def both(x: Tensor) -> Tensor:
        return torch.cat([x, x], 2)

    def added(y: Tensor) -> Tensor:
        return y[:, :, :4] + y[:, :, 4:]

    problem = Problem.internal(torch.zeros(1, 1, 8, 4), FromFunctions((1, 4, 4), both, added))
    with pytest.raises(LeaderError, match=r"no larger than the image; found \[1, 8, 4\]"):
        _like_measurement(torch.zeros(1, 1, 4, 4), problem)
    small = Problem.internal(torch.zeros(1, 1, 2, 4), BicubicSR((1, 4, 8), 2))
    white = torch.arange(32.0).reshape(1, 1, 4, 8)
    assert _like_measurement(white, small).flatten().tolist() == list(range(8))
