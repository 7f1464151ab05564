"""How far y leaves a picture open, under Gaussian priors whose pixels hang together: against dense algebra.

With the exact covariance the posterior standard deviation is right; a referee fitted to one mask or kernel is right on another.
"""

import numpy as np
import pytest
import torch
from torch import Tensor

from leader.operators import BicubicSR, Blur, Inpainting, LinearOperator, WalshHadamard, gaussian_kernel, random_mask
from leader.priors.gaussian import GaussianPrior, stationary
from leader.problem import Problem
from leader.sampler import Sampler
from leader.train.trust_fit import FitSettings, Lesson, fit_referee
from leader.trust.evidence import Evidence, Watch, gather
from leader.uncertainty.covariance import image_covariance

SIDE = 16
SHAPE = (1, SIDE, SIDE)
SIGMA = 0.1


def photographs() -> GaussianPrior:
    """Pictures with the spectrum of photographs, of standard deviation 0.4."""
    return GaussianPrior(stationary(SHAPE, 0.4, slope=2.0))


def true_std(prior: GaussianPrior, operator: LinearOperator, sigma: float) -> Tensor:
    """The posterior standard deviation [1, H, W] by dense algebra; sigma in [-1, 1] units."""
    size = SIDE * SIDE
    eye = torch.eye(size, dtype=torch.float64).reshape(size, *SHAPE)
    before = prior.gaussian.scale(eye, prior.gaussian.variances).reshape(size, size)
    a = operator.A(eye).reshape(size, -1).T
    gain = before @ a.T @ torch.linalg.inv(a @ before @ a.T + sigma**2 * torch.eye(len(a), dtype=torch.float64))
    variance: Tensor = (before - gain @ a @ before).diagonal().clamp_min(0)
    return variance.sqrt().reshape(SHAPE)


OPERATORS: dict[str, LinearOperator] = {
    "sr": BicubicSR(SHAPE, 4),
    "blur": Blur(SHAPE, gaussian_kernel(1.5)),
    "inpaint": Inpainting(SHAPE, random_mask(SIDE, SIDE, 0.5, 1)),
    "cs": WalshHadamard(SHAPE, 0.25),
}


@pytest.mark.parametrize("name", list(OPERATORS))
def test_with_the_exact_covariance_the_posterior_std_is_right_to_two_percent(name: str) -> None:
    prior, operator = photographs(), OPERATORS[name]
    found = image_covariance(prior, torch.zeros(1, *SHAPE, dtype=torch.float64))
    assert found is not None
    size = SIDE * SIDE
    eye = torch.eye(size, dtype=torch.float64).reshape(size, *SHAPE)
    product = found[1].given(operator, SIGMA).product(eye)
    std = (product * eye).sum((1, 2, 3)).sqrt().reshape(SHAPE)
    np.testing.assert_allclose(std, true_std(prior, operator, SIGMA), rtol=0.02)


def evidence_of(prior: GaussianPrior, operator: LinearOperator, seed: int) -> Evidence:
    white = torch.randn(1, *SHAPE, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    truth = prior.gaussian.scale(white, prior.gaussian.variances.sqrt()).float()
    noise = torch.randn(operator.A(truth).shape, generator=torch.Generator().manual_seed(seed + 1000))
    problem = Problem.internal(operator.A(truth) + SIGMA * noise, operator, SIGMA)
    watch = Watch(prior.schedule)
    result = Sampler(prior, "ddnm", (), 6, estimator="exact" if prior.source is None else "auto").run(problem, on_step=watch)
    found = gather(prior, problem, result.images, watch)
    assert found is not None
    return found


def drawn(std: Tensor, seed: int) -> Tensor:
    """Errors [64, H, W] whose standard deviation is `std` [H, W]."""
    white = torch.randn(64, *std.shape, generator=torch.Generator().manual_seed(seed))
    return (std * white).abs().clamp_min(1e-3)


OTHERS: dict[str, tuple[LinearOperator, LinearOperator]] = {
    "another mask": tuple(Inpainting(SHAPE, random_mask(SIDE, SIDE, 0.5, seed)) for seed in (1, 2)),  # type: ignore[dict-item]
    "another kernel": (Blur(SHAPE, gaussian_kernel(1.5)), Blur(SHAPE, torch.full((5, 5), 1 / 25))),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_a_referee_fitted_to_one_operator_is_right_on_another(name: str) -> None:
    prior = photographs()
    fitted, tried = OTHERS[name]
    std = true_std(prior, fitted, SIGMA)[0].float()
    everywhere = torch.ones(SIDE, SIDE, dtype=torch.bool)
    lessons = [Lesson(evidence_of(prior, fitted, 10 + k).features(), drawn(std, k), everywhere) for k in range(6)]
    referee = fit_referee(lessons, FitSettings(steps=160, crop=SIDE, rate=8e-3))
    truth = true_std(prior, tried, SIGMA)[0].float()
    said = [referee(evidence_of(prior, tried, 20 + k).features()[None])[0].exp() for k in range(2)]
    off = (torch.stack(said) / truth - 1).abs().flatten()
    assert float(off.median()) <= 0.06 and float(off.quantile(0.9)) <= 0.15
