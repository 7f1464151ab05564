"""Denoising with another noise at every pixel."""

from __future__ import annotations

import pytest
import torch

from leader.errors import LeaderError
from leader.operators import WeightedPixels
from leader.problem import Problem

SHAPE = (3, 4, 5)
NOISE = torch.rand(*SHAPE, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 10 + 0.01


def test_whitened_noise_is_white_of_the_reference() -> None:
    operator = WeightedPixels(SHAPE, NOISE)
    assert operator.task == "denoise"
    assert operator.reference == pytest.approx(float(NOISE.log().mean().exp()), rel=1e-12)
    noise = NOISE * torch.ones(2, 1, 1, 1, dtype=torch.float64)
    assert torch.allclose(operator.whiten(noise), torch.full((2, *SHAPE), operator.reference, dtype=torch.float64))
    assert torch.allclose(operator.pinv(operator.whiten(noise)), noise)


def test_no_pixel_is_cut_off_however_noisy_it_is() -> None:
    noise = NOISE.clone()
    noise[0, 0, 0] = 1e-7
    operator = WeightedPixels(SHAPE, noise)
    assert bool((operator.s > 0).all()) and operator.truncated() is operator


def test_the_posterior_mean_of_a_gaussian_weighs_each_pixel() -> None:
    """x + A^T (A A^T + rho)^-1 (y - A x) with rho = reference^2 / v is the mean of N(x, v) given noise of each pixel."""
    operator = WeightedPixels(SHAPE, NOISE)
    x, y = torch.zeros(1, *SHAPE, dtype=torch.float64), torch.ones(1, *SHAPE, dtype=torch.float64)
    found = operator.regularised_pinv(operator.whiten(y) - operator.A(x), operator.reference**2 / 0.01)
    assert torch.allclose(found[0], 0.01 / (0.01 + NOISE**2), rtol=1e-10)


def test_values_are_judged_in_whitened_units() -> None:
    operator = WeightedPixels(SHAPE, NOISE)
    x = torch.rand(1, *SHAPE)
    problem = Problem(operator.whiten(x), operator, operator.reference)
    assert torch.allclose(problem.y, operator.A(2 * x - 1), atol=1e-6)
    with pytest.raises(LeaderError, match="divide by 255"):
        Problem(255 * operator.whiten(x), operator, operator.reference)


def test_wrong_noise_is_refused() -> None:
    with pytest.raises(LeaderError, match="the same shape"):
        WeightedPixels(SHAPE, NOISE[:1])
    with pytest.raises(LeaderError, match="greater than 0"):
        WeightedPixels(SHAPE, 0 * NOISE)
