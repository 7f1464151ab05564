"""Sigma_t: closed forms, and the estimators against them, on white, correlated and mixture priors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from leader.priors.ask import Ask
from leader.priors.gaussian import GaussianMixturePrior
from leader.uncertainty.estimators import Hutchinson, exact, make_estimator, noise_energy
from tests.oracle.cases import gaussian, mixture, states

SHAPE = (1, 4, 5)
PRIORS: dict[str, Callable[[], GaussianMixturePrior]] = {
    "white": lambda: gaussian("white", SHAPE),
    "correlated": lambda: gaussian("correlated", SHAPE),
    "four": lambda: gaussian("four", SHAPE),
    "mixture": lambda: mixture(SHAPE),
}


def jacobian(prior: GaussianMixturePrior, x: Tensor, t: Tensor) -> Tensor:
    """d x0 / d x_t of one image by central differences, dense [N, N]."""
    size, step = x.numel(), 1e-5
    columns = []
    for i in range(size):
        bump = torch.zeros(size, dtype=torch.float64)
        bump[i] = step
        up, down = (prior.predict(x + sign * bump.reshape(x.shape), t).x0 for sign in (1, -1))
        columns.append(((up - down) / (2 * step)).reshape(-1))
    return torch.stack(columns, 1)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("t", [5, 200, 600, 950])
def test_second_order_tweedie_equals_the_closed_form(name: str, t: int) -> None:
    """The closed-form variance is the diagonal of (1 - abar)/sqrt(abar) times the Jacobian of the closed-form mean."""
    prior = PRIORS[name]()
    times = torch.tensor([t])
    x = states(prior, t, 1)
    abar = prior.schedule.abar(t)
    diagonal = ((1 - abar) / abar.sqrt() * jacobian(prior, x, times)).diagonal()
    variance = prior.predict(x, times).variance
    assert variance is not None
    assert torch.allclose(diagonal, variance.reshape(-1), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("t", [5, 200, 600])
def test_exact_estimator_equals_the_closed_form(name: str, t: int) -> None:
    prior = PRIORS[name]()
    times = torch.tensor([t, t])
    x = states(prior, t, 2)
    prediction = prior.predict(x, times)
    assert prediction.variance is not None
    sigma = exact(Ask(prior), x, times, prediction, [0, 1])
    assert torch.allclose(sigma, prediction.variance, rtol=1e-8, atol=1e-10)


def test_a_correlated_prior_tells_a_row_sum_from_a_diagonal() -> None:
    prior = gaussian("correlated", SHAPE)
    matrix = jacobian(prior, states(prior, 300, 1), torch.tensor([300]))
    assert float((matrix.sum(1) - matrix.diagonal()).abs().min()) > 0.1 * float(matrix.diagonal().max())


@pytest.mark.parametrize("name", ["correlated", "mixture"])
def test_hutchinson_converges_at_its_derived_rate(name: str) -> None:
    """Each probe has variance sum_{j != i} J_ij^2 at pixel i; 64 probes stay within 5 standard errors everywhere."""
    prior, t, probes = PRIORS[name](), torch.tensor([300]), 64
    x = states(prior, 300, 1)
    prediction = prior.predict(x, t)
    assert prediction.variance is not None
    sigma = Hutchinson(probes, window=1)(Ask(prior), x, t, prediction, [0])
    matrix = jacobian(prior, x, t)
    abar = prior.schedule.abar(300)
    # z_i (J z)_i = J_ii + sum over j != i of z_i z_j J_ij.
    spread = ((matrix**2).sum(1) - matrix.diagonal() ** 2).sqrt() * (1 - abar) / abar.sqrt()
    error = (sigma - prediction.variance).reshape(-1).abs()
    assert bool((error <= 5 * spread / probes**0.5 + 1e-9).all())
    assert float(error.max()) > 0


@pytest.mark.parametrize("name", ["white", "correlated", "mixture"])
@pytest.mark.parametrize("t", [50, 300])
def test_noise_energy_is_unbiased(name: str, t: int) -> None:
    """E over x_t of s_t^2 (1 - eps^2) equals E Sigma: within 4 standard errors of 400 draws."""
    prior, count = PRIORS[name](), 400
    x = states(prior, t, count, seed=3)
    times = torch.full((count,), t)
    prediction = prior.predict(x, times)
    assert prediction.variance is not None
    # The mean over the image of a 7 x 7 mean weighs borders unevenly; one pixel of it is a plain average.
    gap = (noise_energy(Ask(prior), x, times, prediction, range(count)) - prediction.variance)[:, :, 2, 2].reshape(-1)
    assert abs(float(gap.mean())) <= 4 * float(gap.std()) / count**0.5


def test_auto_uses_what_the_prior_knows() -> None:
    prior = gaussian("white", SHAPE)
    x, t = states(prior, 100, 1), torch.tensor([100])
    prediction = prior.predict(x, t)
    estimate = make_estimator("auto", prior)(Ask(prior), x, t, prediction, [0])
    assert estimate is prediction.variance


def test_difference_follows_the_change_of_the_estimate() -> None:
    prior = gaussian("white", SHAPE)
    estimator = make_estimator("difference", prior)
    first, second = states(prior, 100, 1, seed=1), states(prior, 100, 1, seed=2)
    t = torch.tensor([100])
    ask = Ask(prior)
    start = estimator(ask, first, t, prior.predict(first, t), [7])
    assert bool((start == 1).all())
    moved = estimator(ask, second, t, prior.predict(second, t), [7])
    still = estimator(ask, second, t, prior.predict(second, t), [7])
    change = (prior.predict(second, t).x0 - prior.predict(first, t).x0) ** 2
    # The 7 x 7 window around (2, 2) covers all of the 4 x 5 image.
    assert float(moved[0, 0, 2, 2]) == pytest.approx(0.5 + float(change.mean()), rel=1e-9)
    assert torch.allclose(still, 0.5 * moved)
