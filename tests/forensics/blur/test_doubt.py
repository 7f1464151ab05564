"""The doubt of a kernel as noise, against exact derivatives."""

import numpy as np
import pytest
import torch

from leader.forensics.blur.doubt import doubt_power, scene_behind
from leader.forensics.blur.evidence import Scene
from leader.forensics.blur.shapes import Shape
from leader.operators import gaussian_kernel, line_kernel
from leader.operators.whitened import check_power
from tests.forensics.blur.fields import SCENE, estimate, field


def test_a_small_doubt_of_a_gaussian_is_its_derivative() -> None:
    """K = exp(-2 pi^2 s^2 f^2), so dK / dlog(s) = -4 pi^2 s^2 f^2 K; the variance is 0.9 e^2 + 0.1 (4 e)^2 = 2.5 e^2."""
    std, error, side = 2.0, 0.005, 48
    f = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None])
    x = (2 * np.pi * std * f) ** 2
    exact = 2.5 * error**2 * x**2 * np.exp(-x) * SCENE.power(side, side)
    found = doubt_power(gaussian_kernel(std), SCENE, error, (side, side))[0].numpy()
    near = f < 0.2
    assert np.abs(found - exact)[near].max() < 0.01 * exact.max()
    assert found[0, 0] == pytest.approx(0, abs=1e-15)


def test_a_doubted_line_may_be_turned() -> None:
    """Across the motion a scaled line leaves the same, a turned one does not."""
    side, error = 64, 0.01
    kernel = line_kernel(15.0, 0.0)
    found = doubt_power(kernel, SCENE, error, (side, side))[0].numpy() / SCENE.power(side, side)
    assert found[10, 0] == pytest.approx(0, abs=1e-12)  # f along the columns: K = 1, whatever the length, and flat in angle
    length, fy, fx = 15.0, 10 / 64, 3 / 64  # K = sinc(L fx) nearly: turned by a, L (fx + a fy)
    turned, scaled = (np.sinc(length * (fx + moved)) - np.sinc(length * (fx - moved)) for moved in (error * fy, error * fx))
    assert found[10, 3] == pytest.approx(2.5 * (turned**2 + scaled**2) / 4, rel=0.15)


def test_the_power_is_what_a_whitened_blur_takes() -> None:
    tilted = Scene(SCENE.weights + 0.4 * np.eye(9)[4] + 0.2 * np.eye(9)[8])
    for frame in ((40, 54), (41, 54), (40, 55), (41, 55)):  # at half a cycle a pixel a frequency is its own opposite
        power = doubt_power(Shape("line", 8.3, 33.0).kernel(), tilted, 0.05, frame)
        assert torch.allclose(power, power.flip((1, 2)).roll((1, 1), (1, 2)), rtol=1e-12, atol=0)
        assert power.shape == (1, *frame) and power.dtype == torch.float64 and float(power.min()) >= 0
        check_power(power + 1e-9, (3, *frame))
    assert float(doubt_power(gaussian_kernel(2.0), SCENE, 0.0, (16, 16)).abs().max()) < 1e-25


def test_a_wide_doubt_counts_kernels_that_are_far_away() -> None:
    """Where the kernel lets nothing through, a narrower one might: more than the derivative says."""
    std, error, side = 3.0, 0.15, 64
    found = doubt_power(gaussian_kernel(std), SCENE, error, (side, side))[0].numpy()
    x = (2 * np.pi * std * 0.25) ** 2
    assert found[0, 16] > 10 * error**2 * x**2 * np.exp(-x) * SCENE.power(side, side)[0, 16]


def test_the_scene_behind_a_kernel_is_found_again() -> None:
    kernel = gaussian_kernel(2.0)
    scene = scene_behind(field(kernel), kernel, estimate())
    low = (slice(4, 20), slice(4, 20))
    ratio = np.log(scene.power(128, 128)[low] / SCENE.power(128, 128)[low])
    assert np.abs(ratio).max() < 0.4 and abs(ratio.mean()) < 0.15


def test_a_small_or_flat_picture_has_the_photographs_spectrum() -> None:
    kernel = gaussian_kernel(1.0)
    values = field(kernel, side=32)
    scene = scene_behind(values, kernel, estimate())
    assert scene.weights[1] == SCENE.weights[1]
    left = np.abs(np.fft.fft2(np.pad(kernel.numpy(), ((0, 23), (0, 23))))) ** 2 * scene.power(32, 32)
    assert left.reshape(-1)[1:].mean() == pytest.approx(values.var(), rel=0.01)
    flat = scene_behind(np.full((128, 128), 0.5), kernel, estimate())
    assert flat.power(64, 64).max() < 1e-3
