"""What the methods of the related work reach beyond their equations, which `test_plugged_runs` holds: laws and limits in closed
form.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from leader import Sampler
from leader.methods import DAPS, DCDP, Method, PiGDM, REDDiff, State, make_method
from leader.methods.red_diff import REDDiffState
from leader.operators import BicubicSR, Inpainting, SeparableBlur, gaussian_taps
from leader.priors.gaussian import GaussianPrior, white
from leader.problem import Problem
from tests.methods.contexts import context, measured
from tests.oracle.cases import gaussian

SIGMA = 0.2


def test_pigdm_with_the_true_variance_reaches_the_posterior() -> None:
    """Independent pixels, half of them measured: spread and answer to y are the posterior's as steps become many."""
    side, std, sigma = 48, 0.4, 0.1
    mask = ((torch.arange(side)[:, None] + torch.arange(side)) % 2).double()
    prior = GaussianPrior(white((1, side, side), std))
    gain = std**2 / (std**2 + sigma**2)

    def answer(method: Method, level: float) -> Tensor:
        problem = Problem.internal(level * mask.expand(1, 1, side, side), Inpainting((1, side, side), mask), sigma)
        return Sampler(prior, method, (), 400, estimator=None).run(problem, seed=1).images[0, 0]

    exact = PiGDM(variance=std**2, weights="score")
    still, moved = (answer(exact, level) for level in (0.0, 1.0))
    known = mask.bool()
    assert float((moved - still)[known].mean()) == pytest.approx(gain, rel=1e-5), "with any number of steps"
    assert float(still[known].std()) == pytest.approx(std * math.sqrt(1 - gain), rel=0.1)
    assert float(still[~known].std()) == pytest.approx(std, rel=0.07)
    published = PiGDM(weights="score")  # a variance of 1 for pixels of 0.16
    assert float((answer(published, 1.0) - answer(published, 0.0))[known].mean()) < 0.96 * gain


def test_the_langevin_chain_of_daps_reaches_its_target() -> None:
    """Many independent pixels of one value: the mean and the spread of N(x0, s_t^2) given y, within the error of few steps."""
    side, t, sigma = 96, 100, 0.3
    shape = (1, side, side)
    mask = (torch.arange(side)[:, None] % 2).double().expand(side, side)
    prior = GaussianPrior(white(shape, 0.5))
    problem = Problem.internal(0.9 * mask.expand(1, *shape), Inpainting(shape, mask), sigma)
    x0 = torch.full((1, *shape), -0.2, dtype=torch.float64)
    found = DAPS(inner=120, rate=0.015, fall=1.0, tau=sigma).sample(context(prior, problem), x0, torch.tensor([t]))[0, 0]
    a = float(prior.schedule.abar(t))
    precision = np.array([a / (1 - a), a / (1 - a) + 1 / sigma**2])
    means = (-0.2 * a / (1 - a) + np.array([0.0, 0.9 / sigma**2])) / precision
    length = 0.015
    for row, (mean, kappa) in enumerate(zip(means, precision)):
        pixels = found[row::2]
        assert float(pixels.mean()) == pytest.approx(mean, abs=0.03)
        # Steps of a finite length widen the law: 1 / kappa / (1 - length kappa / 2).
        assert float(pixels.var()) == pytest.approx(1 / kappa / (1 - length * kappa / 2), rel=0.06)


def test_red_diff_slows_down_where_its_mean_gradient_is_as_small_as_adams_epsilon() -> None:
    """Far from y by d, with no prior: Adam's first step is rate g / (g + 1e-8) for a gradient of g = d / entries."""
    shape = (1, 64, 96)
    prior, mask = gaussian("correlated", shape), torch.ones(64, 96, dtype=torch.float64)
    for distance in (1e-5, 1e-3):
        y = torch.full((1, *shape), distance, dtype=torch.float64)
        none = torch.zeros_like(y)
        state = REDDiffState(none, none, none, none, none[:, :1, :1, :1])
        made = context(prior, Problem.internal(y, Inpainting(shape, mask), 0.0))
        method, t, u = REDDiff(lam=0.0, rate=0.1), torch.tensor([300]), torch.tensor([200])
        estimate = method.estimate(made, state, t)
        moved = method.finish(made, method.advance(made, state, estimate, estimate.prediction.x0, t, u))
        slope = distance / y.numel()
        assert torch.allclose(moved, torch.full_like(y, 0.1 * slope / (slope + 1e-8)), rtol=1e-6)


def test_dcdp_with_many_steps_solves_the_proximal_problem() -> None:
    shape, t = (1, 6, 8), 300
    prior, operator = gaussian("correlated", shape), SeparableBlur(shape, gaussian_taps(0.7))
    problem = measured(operator, prior.sample(1, torch.Generator().manual_seed(3)), SIGMA)
    x = torch.randn(1, *shape, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    a = float(prior.schedule.abar(t))
    expected = x + operator.regularised_pinv(-problem.residual(x), SIGMA**2 * a / (1 - a))
    found = DCDP(inner=600, lam=1.0).fit(context(prior, problem), x, torch.tensor([t]))
    assert torch.allclose(found, expected, atol=1e-6)


def test_the_flow_of_many_steps_carries_the_prior_to_itself() -> None:
    """The probability flow of a Gaussian maps x_t, of variance abar v + 1 - abar, linearly to a clean image of variance v."""
    side, v, t = 8, 0.25, 800
    prior = GaussianPrior(white((1, side, side), v**0.5))
    problem = Problem.internal(torch.zeros(1, 1, side, side).double(), Inpainting((1, side, side), torch.ones(side, side)), 0.1)
    x = torch.randn(1, 1, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    a = float(prior.schedule.abar(t))
    exact = x * (v / (a * v + 1 - a)) ** 0.5
    errors = []
    for steps in (1, 20, 400):
        estimate = DAPS(flow=steps).estimate(context(prior, problem), State(x), torch.tensor([t]))
        errors.append(float((estimate.prediction.x0 - exact).abs().max()))
    assert errors[2] < 0.02 < errors[1] < errors[0]


@pytest.mark.parametrize("sigma", [0.0, SIGMA])
@pytest.mark.parametrize("method", ["pigdm", "daps", "red-diff", "repaint", "mcg", "dcdp"])
def test_none_is_far_from_the_truth(method: str, sigma: float) -> None:
    """Super-resolution, default settings, 40 steps: the error is about that of a draw of the posterior, 2 of its variances."""
    prior = gaussian("correlated", (1, 16, 12))
    truth = prior.sample(1, torch.Generator().manual_seed(4))
    problem = measured(BicubicSR((1, 16, 12), 2), truth, sigma)
    _, covariance = prior.gaussian.posterior(problem.operator, problem.y[0], sigma)
    images = Sampler(prior, make_method(method, {}), (), 40, estimator=None).run(problem).images
    assert float((images - truth).square().mean()) < 2.6 * float(covariance.diagonal().mean())
