"""Operators for noise that is not white, against dense matrices in NumPy: whitened blurs, weighted pixels, coloured holes."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from leader.errors import LeaderError
from leader.methods import DDNM
from leader.operators import (
    OPPONENT,
    Blur,
    ColouredInpainting,
    Denoising,
    Inpainting,
    WeightedPixels,
    WhitenedBlur,
    gaussian_kernel,
)
from leader.operators import coloured_inpainting as room
from leader.operators.whitened import find_physical
from leader.problem import Problem
from tests.operators.cases import dense, images, relative, symmetric_power

SHAPE = (3, 5, 6)
KERNEL = torch.tensor([[0.1, 0.2, 0.0], [0.3, 0.5, 0.1], [0.0, 0.2, 0.1], [0.2, 0.0, 0.4]], dtype=torch.float64)
Matrix = NDArray[np.complex128]


def fourier(length: int) -> Matrix:
    n = np.arange(length)
    return np.asarray(np.exp(-2j * np.pi * np.outer(n, n) / length) / np.sqrt(length))


def covariance_root(power: Tensor, exponent: float) -> NDArray[np.float64]:
    """C^exponent of noise of that power, written out as a matrix on pixels [C H W]."""
    axes, height, width = power.shape
    plane = np.kron(fourier(height), fourier(width))
    parts = [np.conj(plane.T) @ np.diag(one.reshape(-1).numpy() ** exponent) @ plane for one in power]
    if axes == 1:
        return np.kron(np.eye(3), parts[0].real)
    rows = OPPONENT.numpy()
    return np.asarray(sum(np.kron(np.outer(row, row), part.real) for row, part in zip(rows, parts, strict=True)))


@pytest.mark.parametrize("axes", [1, 3])
def test_it_is_the_blur_times_the_root_of_the_inverse_covariance(axes: int) -> None:
    """Also `whiten` alone, the regularised inverse and the singular values, by matrices."""
    power = symmetric_power(4, axes, *SHAPE[1:])
    operator = WhitenedBlur(SHAPE, KERNEL, power)
    whitening = operator.reference * covariance_root(power, -0.5)
    matrix = whitening @ dense(Blur(SHAPE, KERNEL)).numpy()
    assert np.abs(dense(operator).numpy() - matrix).max() <= 1e-12
    y = images(operator, 1, 3, torch.float64)
    flat = y.numpy().reshape(-1)
    assert np.abs(operator.whiten(y).numpy().reshape(-1) - whitening @ flat).max() <= 1e-12
    assert np.abs(operator.AT(y).numpy().reshape(-1) - matrix.T @ flat).max() <= 1e-12
    expected = matrix.T @ np.linalg.solve(matrix @ matrix.T + 0.03 * np.eye(len(matrix)), flat)
    assert np.abs(operator.regularised_pinv(y, 0.03).numpy().reshape(-1) - expected).max() <= 1e-11
    found = operator.spectrum.expand(1, *SHAPE).flatten().sort(descending=True).values.numpy()
    assert np.abs(found - np.linalg.svd(matrix, compute_uv=False)).max() <= 1e-12
    assert operator.norm == pytest.approx(found[0], rel=1e-12)


def test_the_reference_is_that_of_the_frequencies_that_pass() -> None:
    """Noise where the blur passes nothing does not count, and noise twice as strong everywhere counts twice."""
    shape = (1, 16, 16)
    blur = Blur(shape, gaussian_kernel(2.0, 13))
    power = torch.where(blur.spectrum[0] > 0.05, 0.01**2, 0.3**2).double()
    operator = WhitenedBlur(shape, gaussian_kernel(2.0, 13), power)
    assert 0.01 < operator.reference < 0.0102
    assert WhitenedBlur(shape, gaussian_kernel(2.0, 13), 4 * power).reference == pytest.approx(2 * operator.reference)
    weights = blur.spectrum[0].square()
    by_hand = math.exp(float((weights * power.sqrt().log()).sum() / weights.sum()))
    assert operator.reference == pytest.approx(by_hand, rel=1e-12)


def test_the_cut_is_that_of_the_blur_however_noisy_a_frequency_is() -> None:
    shape, kernel = (1, 16, 16), gaussian_kernel(2.0, 13)
    power = torch.where(torch.arange(16) % 3 == 0, 1e4, 1e-4).double().expand(1, 16, 16)
    power = power + power.flip((1, 2)).roll((1, 1), (1, 2))
    operator, blur = WhitenedBlur(shape, kernel, power, rcond=0.01), Blur(shape, kernel, rcond=0.01)
    assert torch.equal(operator.s == 0, blur.s == 0) and bool((blur.s == 0).any())
    x = images(operator, 1, 0, torch.float64)
    assert relative(operator.pinv(operator.A(x)), blur.pinv(blur.A(x))) <= 1e-9


def test_a_problem_of_it_is_judged_and_selected() -> None:
    """Ranges are judged in whitened units; a batch shares the operator."""
    power = symmetric_power(3, 3, *SHAPE[1:]) * 1e-4
    operator = WhitenedBlur(SHAPE, KERNEL, power, task="deblur-motion")
    x = torch.rand(2, *SHAPE, generator=torch.Generator().manual_seed(0))
    y = operator.whiten(Blur(SHAPE, KERNEL).A(x))
    problem = Problem(y, operator, operator.reference)
    assert problem.select(torch.tensor([1])).operator is operator
    assert operator.truncated().task == "deblur-motion"
    assert relative(problem.y, operator.A(2 * x - 1)) <= 1e-5
    with pytest.raises(LeaderError, match="divide by 255"):
        Problem(255 * y, operator, operator.reference)
    with pytest.raises(LeaderError, match="complex coefficients"):
        DDNM(noise="published").check(problem)


def test_what_the_camera_did_behind_a_whitened_measurement() -> None:
    """The verdict asks how much detail a blur removes; whitening removes none. The cut is the same."""
    whitened, blur = WhitenedBlur(SHAPE, KERNEL, symmetric_power(1, 3, *SHAPE[1:]), rcond=0.3), Blur(SHAPE, KERNEL, rcond=0.3)
    found, x = find_physical(whitened), images(blur, 1, 0, torch.float64)
    assert type(found) is Blur and relative(found.A(x), blur.A(x)) <= 1e-12
    assert torch.equal(found.s, blur.s) and float((found.s == 0).double().mean()) > 0.1
    assert isinstance(find_physical(WeightedPixels(SHAPE, torch.ones(SHAPE))), Denoising) and find_physical(blur) is blur


PIXELS = (3, 4, 5)
NOISE = torch.rand(*PIXELS, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 10 + 0.01


def test_whitened_noise_is_white_of_the_reference() -> None:
    operator = WeightedPixels(PIXELS, NOISE)
    assert operator.task == "denoise"
    assert operator.reference == pytest.approx(float(NOISE.log().mean().exp()), rel=1e-12)
    noise = NOISE * torch.ones(2, 1, 1, 1, dtype=torch.float64)
    assert torch.allclose(operator.whiten(noise), torch.full((2, *PIXELS), operator.reference, dtype=torch.float64))
    assert torch.allclose(operator.pinv(operator.whiten(noise)), noise)


def test_no_pixel_is_cut_off_however_noisy_it_is() -> None:
    noise = NOISE.clone()
    noise[0, 0, 0] = 1e-7
    operator = WeightedPixels(PIXELS, noise)
    assert bool((operator.s > 0).all()) and operator.truncated() is operator


def test_the_posterior_mean_of_a_gaussian_weighs_each_pixel() -> None:
    """x + A^T (A A^T + rho)^-1 (y - A x) with rho = reference^2 / v is the mean of N(x, v) given noise of each pixel."""
    operator = WeightedPixels(PIXELS, NOISE)
    x, y = torch.zeros(1, *PIXELS, dtype=torch.float64), torch.ones(1, *PIXELS, dtype=torch.float64)
    found = operator.regularised_pinv(operator.whiten(y) - operator.A(x), operator.reference**2 / 0.01)
    assert torch.allclose(found[0], 0.01 / (0.01 + NOISE**2), rtol=1e-10)


def test_values_are_judged_in_whitened_units() -> None:
    operator = WeightedPixels(PIXELS, NOISE)
    x = torch.rand(1, *PIXELS)
    problem = Problem(operator.whiten(x), operator, operator.reference)
    assert torch.allclose(problem.y, operator.A(2 * x - 1), atol=1e-6)
    with pytest.raises(LeaderError, match="divide by 255"):
        Problem(255 * operator.whiten(x), operator, operator.reference)


MASK = (torch.arange(30).reshape(5, 6) % 7 > 1).float()


@pytest.mark.parametrize("axes", [1, 3])
@pytest.mark.parametrize("eta", [0.02, 0.5])
def test_the_inverse_is_that_of_the_covariance_between_known_pixels(
    axes: int, eta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "TOLERANCE", 1e-12)
    monkeypatch.setattr(room, "ITERATIONS", 300)
    power = symmetric_power(3, axes, *SHAPE[1:])
    operator = ColouredInpainting(SHAPE, MASK, power)
    assert operator.reference == pytest.approx(float(power.mean().sqrt()))
    r = images(operator, 1, 2, torch.float64)
    known = np.tile(MASK.numpy().reshape(-1) > 0, 3)
    covariance = np.eye(len(known)) + eta * covariance_root(power, 1.0) / operator.reference**2
    expected = np.zeros(len(known))
    expected[known] = np.linalg.solve(covariance[np.ix_(known, known)], r.numpy().reshape(-1)[known])
    assert np.abs(operator.regularised_pinv(r, eta).numpy().reshape(-1) - expected).max() <= 1e-10
    assert operator.residual < 1e-11
    each = operator.regularised_pinv(r.expand(2, -1, -1, -1), torch.tensor([eta, 2 * eta], dtype=torch.float64))
    assert torch.allclose(each[:1], operator.regularised_pinv(r, eta)) and not torch.allclose(each[0], each[1])


def test_white_noise_is_inpainting_as_ever() -> None:
    operator = ColouredInpainting(SHAPE, MASK, torch.full((1, 5, 6), 0.01, dtype=torch.float64))
    plain = Inpainting(SHAPE, MASK)
    x = images(operator, 2, 2, torch.float32)
    assert operator.reference == pytest.approx(0.1) and operator.select(torch.tensor([0])) is operator
    for name in ("A", "AT", "pinv", "whiten"):
        assert torch.equal(getattr(operator, name)(x), getattr(plain, "A" if name != "whiten" else "to")(x))
    assert torch.allclose(operator.regularised_pinv(x, 0.3), plain.regularised_pinv(x, 0.3), atol=1e-6)
