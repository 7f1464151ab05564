"""Is a kernel much too wide? Pictures with the spectrum of photographs, blurred by known widths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage

from leader.diagnosis.periodogram import plane
from leader.diagnosis.shapes import transfer_of
from leader.diagnosis.width import _narrowed, _power, width_of
from leader.operators import gaussian_kernel
from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.real_noise import NoiseEstimate

NOISE = NoiseEstimate(0.01, 0.01, 1 / 255 / 12**0.5)


def scene(seed: int, side: int = 96) -> NDArray[np.float64]:
    """Power 1/f^2.3, standard deviation 0.2."""
    rng = np.random.default_rng(seed)
    f = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side)[None])
    f[0, 0] = np.inf
    picture = np.fft.ifft2(np.fft.fft2(rng.standard_normal((side, side))) * f**-1.15).real
    return np.asarray(0.5 + 0.2 * picture / picture.std())


def blurred(seed: int, std: float) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed + 100)
    picture = scene(seed)
    return np.asarray(ndimage.gaussian_filter(picture, std, mode="wrap") + 0.01 * rng.standard_normal(picture.shape))


def odds(picture: NDArray[np.float64], width: float) -> float:
    found = width_of(picture, gaussian_kernel(width), NOISE)
    assert found is not None
    return found.odds


@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_half_as_wide_again_is_noticed_and_the_true_one_is_not(seed: int) -> None:
    luma = blurred(seed, 1.5)
    right, wrong, sharp = (odds(picture, width) for picture, width in ((luma, 1.5), (luma, 2.25), (scene(seed), 1.5)))
    assert right < 0 and wrong > 1 and sharp > 5
    assert odds(luma, 1.6) < 0.3, "a few per cent do not matter"
    assert odds(luma, 1.0) < 0, "too narrow a kernel is another fault"


def test_what_is_due_is_what_the_true_blur_and_the_noise_did() -> None:
    luma = blurred(0, 1.5)
    found = width_of(luma, gaussian_kernel(2.5), NOISE)  # of which 0.6 is the true one
    assert found is not None
    assert found.due == pytest.approx(float(np.sqrt(((luma - scene(0)) ** 2).mean())), rel=0.25)


def test_a_kernel_at_its_own_width_is_itself_and_at_none_is_no_blur() -> None:
    at = plane(64)
    kernel = gaussian_kernel(2.0).double().numpy()
    np.testing.assert_allclose(_power(_narrowed(kernel, 1.0, 64), at), transfer_of(gaussian_kernel(2.0), at), atol=1e-6)
    np.testing.assert_allclose(_narrowed(kernel, 0.0, 64), 1.0)
    half = _power(_narrowed(gaussian_kernel(3.0).double().numpy(), 0.5, 64), at)
    np.testing.assert_allclose(half, transfer_of(gaussian_kernel(1.5), at), atol=0.01)


def test_nothing_is_said_where_nothing_can_be_seen() -> None:
    kernel = gaussian_kernel(1.5)
    assert width_of(np.full((96, 96), 0.5), kernel, NOISE) is None
    assert width_of(scene(0)[:40], kernel, NOISE) is None
    squeezed = NoiseEstimate(0.01, 0.01, 0.001, JpegHistory((16,) * 64))
    assert width_of(scene(0), kernel, squeezed) is None
    found = width_of(scene(0), torch.ones(1, 1), NOISE)
    assert found is not None and found.odds == pytest.approx(0.0, abs=1e-6), "no kernel is narrower than none"
