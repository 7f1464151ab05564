"""Noise that grows with brightness, behind JPEG: found at its level, and not where there is none."""

import io
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from leader.forensics import NotExamined, examine
from leader.forensics.jpeg.noise_planes import read_chroma, read_luma
from leader.forensics.jpeg.quantised_noise import NOISES, profile_noise
from leader.forensics.noise.estimate import COARSE_COLOUR, COARSE_GROWING, NoiseEstimate
from leader.forensics.noise.light import LightNoise
from leader.pictures import from_pil


def scene(channels: int) -> NDArray[np.float64]:
    """192 x 256 pixels that grow brighter to the right, each channel to its own limit, with waves in the upper half."""
    rows, columns = np.mgrid[0:192, 0:256]
    waves = 0.05 * np.sin(rows / 7) * np.cos(columns / 11) * (rows < 96)
    limits = np.array([0.75, 0.6, 0.45])[:channels]
    return np.asarray((0.1 + columns / 255)[..., None] * limits + waves[..., None]).clip(0, 1)


def read_noise(pixels: NDArray[np.float64], quality: int, known: NDArray[np.bool_] | None = None) -> NoiseEstimate:
    values = (pixels.clip(0, 1) * 255).round().astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(values[..., 0] if values.shape[2] == 1 else values).save(buffer, "JPEG", quality=quality)
    found = replace(examine(from_pil(Image.open(buffer))), known=known).noise
    assert not isinstance(found, NotExamined)
    return found


@pytest.mark.parametrize(("channels", "peak", "quality"), [(3, 50, 75), (3, 120, 92), (1, 70, 85), (3, 90, 55)])
def test_counted_light_behind_jpeg(channels: int, peak: int, quality: int) -> None:
    truth = scene(channels)
    found = read_noise(np.random.default_rng(3).poisson(truth * peak) / peak, quality)
    assert found.shot is not None and found.history is not None
    for brightness in (0.3, 0.6):
        assert float(found.shot.std(np.array(brightness))) == pytest.approx(np.sqrt(brightness / peak), rel=0.2)
    assert found.white == pytest.approx(np.sqrt(truth.mean() / peak), rel=0.15)


@pytest.mark.parametrize(
    ("channels", "read", "gain", "quality"), [(3, 0.04, 0.0, 88), (3, 0.02, 0.006, 92), (1, 0.04, 0.001, 85)]
)
def test_noise_of_light_behind_jpeg(channels: int, read: float, gain: float, quality: int) -> None:
    truth = scene(channels)
    light = truth**2.2
    drawn = light + np.sqrt(gain * light + read**2) * np.random.default_rng(3).standard_normal(truth.shape)
    seen = drawn.clip(0) ** (1 / 2.2)
    found = read_noise(seen, quality)
    assert isinstance(found.shot, LightNoise) and found.history is not None and found.spectrum is None
    middle = np.array([0.45, 0.75])  # the derivative of pixels by light, where noise is far weaker than light
    expected = np.sqrt(gain * middle**2.2 + read**2) * middle**-1.2 / 2.2
    np.testing.assert_allclose(found.shot.std(middle), expected, rtol=0.25)  # the shares that are tried differ by as much
    assert found.white == pytest.approx(np.sqrt(((seen.clip(0, 1) - truth) ** 2).mean()), rel=0.15)
    more = found.raised()
    times = COARSE_GROWING if channels == 3 else 1.0
    assert isinstance(more.shot, LightNoise) and more.white == times * found.white
    assert more.shot.floor == pytest.approx(times**2 * found.shot.floor)


def test_weak_noise_of_light_and_noise_of_one_colour_are_not_said_to_fall() -> None:
    """Weak beside the error of the compression, it may be texture of the shadows."""
    rng = np.random.default_rng(3)
    draw = rng.standard_normal((192, 256, 3))
    for noise in (0.005 * draw, 0.04 * draw[..., :1], 0.05 * draw[..., :1] + 0.03 * draw[::-1]):
        assert read_noise((scene(3) ** 2.2 + noise).clip(0) ** (1 / 2.2), 80).shot is None
    shadows = scene(3) ** 2.2 + 0.012 * draw
    assert read_noise(shadows.clip(0) ** (1 / 2.2), 95).shot is not None
    assert read_noise(shadows.clip(0) ** (1 / 2.2), 40).shot is None


@pytest.mark.parametrize("falls", [False, True])
def test_the_level_behind_jpeg_is_that_of_what_is_known(falls: bool) -> None:
    truth, rng, known = scene(3), np.random.default_rng(3), np.zeros((192, 256), bool)
    known[:, 96:] = True
    seen = (
        (truth**2.2 + 0.04 * rng.standard_normal(truth.shape)).clip(0) ** (1 / 2.2) if falls else rng.poisson(truth * 50) / 50
    )
    off = (seen.clip(0, 1) - truth)[known]
    assert read_noise(np.where(known[..., None], seen, 0), 90, known).white == pytest.approx(off.std(), rel=0.12)


def test_clipped_noise_behind_jpeg_counts_as_before() -> None:
    truth = 1.2 * scene(3)
    found = read_noise(truth + np.random.default_rng(3).normal(0, 0.12, truth.shape), 92)
    assert found.white == pytest.approx(0.12, rel=0.05) and found.shot is None


def test_points_of_light_and_dots_on_white_are_no_noise() -> None:
    points = (np.random.default_rng(1).random((192, 256, 1)) < 0.02) * np.ones(3)
    assert read_noise(points, 85).white == read_noise(1 - points, 85).white == 0


def test_white_noise_and_none_do_not_grow() -> None:
    noise = np.random.default_rng(4).normal(0, 0.07, (192, 256, 3))
    white = read_noise(scene(3) * 0.8 + 0.1 + noise, 85)
    assert white.shot is None and white.white == pytest.approx(0.07, rel=0.15)
    assert read_noise(scene(3), 75).shot is None


def test_noise_whose_colour_is_coarse_counts_for_more_where_it_is_removed() -> None:
    rng = np.random.default_rng(3)
    found = read_noise(rng.poisson(scene(3) * 50) / 50, 85)
    more = found.raised()
    assert found.shot is not None and more.shot is not None and more.white == COARSE_GROWING * found.white
    assert float(more.shot.std(np.array(0.5))) == pytest.approx(COARSE_GROWING * float(found.shot.std(np.array(0.5))))
    white = read_noise(scene(3) * 0.8 + 0.1 + rng.normal(0, 0.07, (192, 256, 3)), 85)
    assert white.raised().white == COARSE_COLOUR * white.white and 1 < COARSE_COLOUR < COARSE_GROWING
    grey, fine = read_noise(rng.poisson(scene(1) * 50) / 50, 85), read_noise(scene(3), 30)
    assert grey.raised() is grey and fine.raised() is fine


def test_texture_without_colour_is_no_noise() -> None:
    """Grey grain in luma looks like noise of any colour picture; its chroma is empty, and rules noise out."""
    grain = np.random.default_rng(5).normal(0, 0.06, (192, 256, 1))
    coloured = np.random.default_rng(5).normal(0, 0.06, (192, 256, 3))
    even = 0.3 + 0.3 * scene(3)
    assert read_noise(even + grain, 92).white < 0.02
    assert read_noise(even + coloured, 92).white == pytest.approx(0.06, rel=0.15)


@pytest.mark.parametrize("sampling", [(1, 1), (1, 2), (2, 2)])
def test_noise_has_the_same_level_in_every_plane(sampling: tuple[int, int]) -> None:
    """Of luma, Cb and Cr, however chroma was averaged; a picture that does not fill its last blocks."""
    noisy = 0.5 + np.random.default_rng(6).normal(0, 0.08, (200, 184, 3))
    buffer = io.BytesIO()
    numbers = {(1, 1): 0, (1, 2): 1, (2, 2): 2}
    Image.fromarray((noisy.clip(0, 1) * 255).round().astype(np.uint8)).save(
        buffer, "JPEG", quality=90, subsampling=numbers[sampling]
    )
    picture = from_pil(Image.open(buffer))
    assert picture.history is not None and picture.history.sampling == sampling
    pixels = np.asarray(picture.pixels, np.float64)
    known = np.ones(pixels.shape[:2], bool)
    known[:40] = False
    luma = read_luma(pixels, picture.history, known)
    for plane in [luma, *read_chroma(pixels, picture.history, known)]:
        rows, columns = (1, 1) if plane.steps is luma.steps else sampling
        assert plane.blocks.known.sum() == (200 // (8 * rows) - -(-40 // (8 * rows))) * (184 // (8 * columns))
        assert plane.shares.sum() == pytest.approx(1)
        below, beside = (slice(8 * side, 16 * side) for side in (rows, columns))
        np.testing.assert_allclose(plane.pixels[1, 1].mean(-1), pixels[below, beside].mean((0, 1)))
        profile = profile_noise(plane.blocks.coefficients[plane.blocks.known], plane.steps)
        assert NOISES[int(profile.argmax())] / plane.unit == pytest.approx(0.08, rel=0.15)
