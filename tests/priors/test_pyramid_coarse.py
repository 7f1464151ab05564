"""The Gaussian prior of tiny level images against dense linear algebra."""

from __future__ import annotations

import math

import pytest
import torch

from leader.priors.coarse_gaussian import OPPONENT, CoarseGaussian, dct_matrix

PRIOR = CoarseGaussian(
    mean=(0.4, 0.45, 0.5),
    dc=(0.1, 0.02, 0.01),
    scale=(6e-4, 4e-5, 1e-5),
    knee=(0.03, 0.04, 0.04),
    power=(2.8, 3.0, 2.9),
    detail=(0.0, 0.001, 0.002),
)


def dense_covariance(height: int, width: int) -> torch.Tensor:
    """Covariance of the stacked RGB image, [3 H W, 3 H W]."""
    basis = torch.kron(OPPONENT, torch.kron(dct_matrix(height), dct_matrix(width)))
    return basis.T @ torch.diag(PRIOR.spectrum(height, width).flatten()) @ basis


def test_posterior_is_that_of_the_dense_gaussian() -> None:
    height, width, sigma = 5, 6, 0.7
    noisy = torch.rand(1, 3, height, width, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    covariance = dense_covariance(height, width)
    gain = covariance @ torch.linalg.inv(covariance + sigma**2 * torch.eye(len(covariance), dtype=torch.float64))
    mean = torch.tensor(PRIOR.mean, dtype=torch.float64).view(3, 1, 1).expand(3, height, width).flatten()
    expected = mean + gain @ (noisy.flatten() - mean)
    expected_variance = torch.diagonal(covariance - gain @ covariance) + PRIOR.detail[2]
    estimate, variance = PRIOR.posterior(noisy, sigma, 2)
    torch.testing.assert_close(estimate.flatten(), expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(variance.flatten(), expected_variance, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("height", "width"), [(4, 4), (2, 8)])
def test_the_spectrum_is_the_law_at_every_frequency_and_the_variance_of_the_mean_at_none(height: int, width: int) -> None:
    """An orthonormal coefficient of the mean is sqrt(pixels) times the mean: its variance has as many times that."""
    three = (1.0, 2.0, 3.0)
    coarse = CoarseGaussian(three, (0.1, 0.2, 0.3), three, (0.5, 0.4, 0.3), (2.0, 2.5, 3.0), (0.01,))
    found = coarse.spectrum(height, width)
    assert found[:, 0, 0].tolist() == pytest.approx([height * width * dc for dc in (0.1, 0.2, 0.3)])
    f = math.hypot(1 / (2 * height), 3 / (2 * width))
    expected = [scale / (f**2 + knee**2) ** (power / 2) for scale, knee, power in zip(three, coarse.knee, coarse.power)]
    assert found[:, 1, 3].tolist() == pytest.approx(expected)
