"""Is a kernel much too wide? Pictures with the spectrum of photographs, blurred by known widths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage

from leader.diagnosis.periodogram import plane
from leader.diagnosis.shapes import transfer_of
from leader.diagnosis.width import _narrowed, too_wide
from leader.operators import gaussian_kernel
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


@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_half_as_wide_again_is_noticed_and_the_true_one_is_not(seed: int) -> None:
    luma = blurred(seed, 1.5)
    right, wrong, sharp = (
        too_wide(picture, gaussian_kernel(width), NOISE) for picture, width in ((luma, 1.5), (luma, 2.25), (scene(seed), 1.5))
    )
    assert right is not None and wrong is not None and sharp is not None
    assert right < 0 and wrong > 1 and sharp > 5
    near = too_wide(luma, gaussian_kernel(1.6), NOISE)
    assert near is not None and near < 0.3, "a few per cent do not matter"
    narrow = too_wide(luma, gaussian_kernel(1.0), NOISE)
    assert narrow is not None and narrow < 0, "too narrow a kernel is another fault"


def test_a_kernel_at_its_own_width_is_itself_and_at_none_is_no_blur() -> None:
    at = plane(64)
    kernel = gaussian_kernel(2.0)
    np.testing.assert_allclose(_narrowed(kernel.double().numpy(), 1.0, at), transfer_of(kernel, at), atol=1e-6)
    np.testing.assert_allclose(_narrowed(kernel.double().numpy(), 0.0, at), 1.0)
    half, narrow = _narrowed(gaussian_kernel(3.0).double().numpy(), 0.5, at), transfer_of(gaussian_kernel(1.5), at)
    np.testing.assert_allclose(half, narrow, atol=0.01)


def test_nothing_is_said_where_nothing_can_be_seen() -> None:
    kernel = gaussian_kernel(1.5)
    assert too_wide(np.full((96, 96), 0.5), kernel, NOISE) is None
    assert too_wide(scene(0)[:40], kernel, NOISE) is None
    assert too_wide(scene(0), torch.ones(1, 1), NOISE) == pytest.approx(0.0, abs=1e-6), "no kernel is narrower than none"
