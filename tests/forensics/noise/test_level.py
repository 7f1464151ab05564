"""The noise estimate on the bundled photographs with known noise, clipped and rounded as a file would."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import leader
from leader.errors import LeaderError
from leader.forensics.noise.level import estimate_noise
from leader.forensics.noise.windows import share_clipped
from leader.pictures import read_picture
from tests.forensics.noise.reading import measure_noise

PHOTOGRAPHS = sorted((Path(leader.__file__).parent / "samples" / "test").glob("*.png"))
Array = NDArray[np.float64]


def noisy(path: Path, sigma: float, grey: bool = False) -> Array:
    pixels = read_picture(path).pixels.astype(np.float64)
    if grey:
        pixels = pixels.mean(2, keepdims=True)
    values = pixels + sigma * np.random.default_rng(7).standard_normal(pixels.shape)
    return np.round(values.clip(0, 1) * 255) / 255


@pytest.mark.parametrize("sigma", [0.05, 0.2])
def test_within_ten_per_cent_on_colour_photographs(sigma: float) -> None:
    ratios = np.array([estimate_noise(noisy(path, sigma)) / sigma for path in PHOTOGRAPHS[::4]])
    assert np.abs(ratios - 1).max() <= 0.1, ratios


def test_weak_noise_on_colour_photographs() -> None:
    """Photographs that are textured all over hide weak noise: one of these eight is allowed 20 %."""
    ratios = np.array([estimate_noise(noisy(path, 0.02)) / 0.02 for path in PHOTOGRAPHS[::2]])
    errors = np.sort(np.abs(ratios - 1))
    assert errors[-2] <= 0.1 and errors[-1] <= 0.2, ratios


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("path", PHOTOGRAPHS, ids=lambda path: path.stem)
def test_weak_noise_adds_to_what_the_picture_has(path: Path, grey: bool) -> None:
    """Two of the crops are fine grain all over, 0.012 of it in colour and 0.02 in grey, which nothing blind tells from noise:
    the estimate is that of both together, within 10 %.
    """
    own, both = (estimate_noise(noisy(path, sigma, grey)) for sigma in (0.0, 0.02))
    assert both == pytest.approx((own**2 + 0.02**2) ** 0.5, rel=0.1)


GRAINY = {"95a4": 0.28, "ec78": 0.28}
"""Crops of fine grain all over, by the begin of their hash: the errors they are allowed in grey."""


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("path", PHOTOGRAPHS, ids=lambda path: path.stem)
def test_weak_noise_of_a_file_without_compression(path: Path, grey: bool) -> None:
    """What a restoration takes for noise: within 10 % of 0.02 on all 16 crops in colour, on 14 in grey. The other two have
    grain of their own, which counts in part where there is no colour to look at.
    """
    allowed = GRAINY.get(path.stem.rpartition("_")[2][:4], 0.1) if grey else 0.1
    assert measure_noise(noisy(path, 0.02, grey)).sigma == pytest.approx(0.02, rel=allowed)


def test_within_ten_per_cent_on_grey_photographs() -> None:
    ratios = np.array([estimate_noise(noisy(path, 0.1, grey=True)) / 0.1 for path in PHOTOGRAPHS[::4]])
    assert np.abs(ratios - 1).max() <= 0.1, ratios


def test_flat_picture_without_and_with_noise() -> None:
    flat = np.full((64, 64, 1), 0.5)
    assert estimate_noise(flat) == 0
    values = flat + 0.3 * np.random.default_rng(0).standard_normal(flat.shape)  # beyond [0, 1]: not clipped
    assert estimate_noise(values) == pytest.approx(0.3, rel=0.05)


def test_missing_pixels_are_left_out() -> None:
    image = noisy(PHOTOGRAPHS[2], 0.05)
    known = np.ones(image.shape[:2], bool)
    known[60:120, 40:200] = False
    estimate = estimate_noise(image * known[..., None], known)
    assert estimate == pytest.approx(0.05, rel=0.1)
    with pytest.raises(LeaderError, match="give the noise level"):
        estimate_noise(image, np.random.default_rng(0).random(known.shape) < 0.5)


def test_tiny_pictures_are_refused() -> None:
    with pytest.raises(LeaderError, match="too few to estimate"):
        estimate_noise(np.zeros((9, 9, 3)))


def test_a_pixel_is_clipped_where_any_of_its_channels_is() -> None:
    pixels = np.full((4, 6, 3), 0.5)
    pixels[1, 3, 2], pixels[2, 3, 0] = 1.0, 0.0
    assert share_clipped(pixels, 2, 2).tolist() == [[0, 0.25, 0], [0, 0.25, 0]]


@pytest.mark.parametrize("channels", [1, 3])
def test_noise_that_was_clipped_counts_as_before(channels: int) -> None:
    """Near black half of the noise is lost to the clipping: the estimate undoes it."""
    noise = 0.1 * np.random.default_rng(0).standard_normal((96, 96, channels))
    values = (0.06 + noise).clip(0, 1)
    assert values.std() < 0.08
    assert estimate_noise(values) == pytest.approx(0.1, rel=0.1 if channels == 3 else 0.12)  # grey has a third of the samples
