"""The parts of the noise estimates by themselves, where photographs with tolerances would pass over a slip."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from leader.errors import LeaderError
from leader.forensics.noise import clipping, texture_limit
from leader.forensics.noise import level as noise_level
from leader.forensics.noise.estimate import NoiseEstimate
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.pictures.jpeg_history import JpegHistory

Array = NDArray[np.float64]
HISTORY = JpegHistory((3,) * 64)


def white(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize(("centre", "sigma"), [(0.02, 0.1), (-0.05, 0.1), (0.96, 0.1), (0.3, 0.3), (0.7, 0.4)])
def test_noise_that_was_clipped(centre: float, sigma: float) -> None:
    """Mean and variance of a clipped normal variable by numerical integration, and back."""
    values = np.linspace(centre - 9 * sigma, centre + 9 * sigma, 200_001)
    weights = np.exp(-(((values - centre) / sigma) ** 2) / 2)
    seen = values.clip(0, 1)
    mean = np.average(seen, weights=weights)
    left = float(np.average((seen - mean) ** 2, weights=weights)) / sigma**2
    means = np.array([mean])
    assert clipping.share_left(means, sigma)[0] == pytest.approx(left, rel=0.01)
    assert clipping.unclip_mean(means, np.array([sigma]))[0] == pytest.approx(centre, abs=0.01 * sigma)
    if left > 0.3:
        assert clipping.before_clipping(math.sqrt(left) * sigma, means) == pytest.approx(sigma, rel=0.1)


@pytest.mark.parametrize(("side", "patches"), [(10, 16), (20, 196)])
def test_a_noise_level_takes_four_patches_for_every_number_in_one(side: int, patches: int) -> None:
    known = np.zeros((40, 40), bool)
    known[5 : 5 + side, 8 : 8 + side] = True
    image = 0.5 + 0.05 * white(40, 40, 1)
    if patches < 4 * 49:
        with pytest.raises(LeaderError, match=f"Only {patches} patches of 7 x 7 known pixels"):
            noise_level.estimate_noise(image, known)
    else:
        assert noise_level.estimate_noise(image, known) > 0


def test_one_number_for_all_noise_leaves_the_spectrum_of_a_compression_to_its_own() -> None:
    loud = NoiseSpectrum.white(0.5)
    assert NoiseEstimate(0.01, 0.02, 0.001, HISTORY, loud).sigma == 0.02
    assert NoiseEstimate(0.01, 0.0, 0.001, None, loud).sigma == pytest.approx(0.5)
    assert NoiseEstimate(0.01, 0.0, 0.03).sigma == 0.03 and NoiseEstimate(0.04, 0.02, 0.03, HISTORY).sigma == 0.04


@pytest.mark.parametrize(("side", "told"), [(20, False), (40, True)])
def test_too_few_known_blocks_set_no_limit(side: int, told: bool) -> None:
    known = np.zeros((64, 64), bool)
    known[4 : 4 + side, 4 : 4 + side] = True
    assert math.isfinite(texture_limit.white_limit(0.5 + 0.02 * white(64, 64, 3), known)) == told
