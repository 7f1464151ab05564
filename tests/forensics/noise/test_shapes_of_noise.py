"""Texture told from noise, noise with a spectrum and noise that grows with brightness, on pictures made for it."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from leader.forensics.noise.coloured import noise_spectrum
from leader.forensics.noise.estimate import rounding
from leader.forensics.noise.level import estimate_noise
from leader.forensics.noise.light import LightNoise, light_noise
from leader.forensics.noise.shot import ShotNoise, shot_noise
from leader.forensics.noise.texture_limit import white_limit
from leader.pictures.jpeg_history import read_history
from leader.transforms import OPPONENT
from tests.forensics.jpegs import jpeg, photograph, unit
from tests.forensics.noise.reading import measure_noise

Array = NDArray[np.float64]
LEAST = rounding(8)
SIDE = 128


def ramp(low: float = 0.2, high: float = 0.8) -> Array:
    """A smooth picture [128, 128, 3]."""
    across = np.linspace(low, high, SIDE)
    return np.stack([np.tile(across, (SIDE, 1)), np.tile(across[::-1], (SIDE, 1)), np.tile(across[:, None], (1, SIDE))], -1)


def draw(seed: int = 0, channels: int = 3) -> Array:
    return np.random.default_rng(seed).standard_normal((SIDE, SIDE, channels))


def low_pass(noise: Array, width: float) -> Array:
    """Noise of unit variance blurred by a Gaussian of that standard deviation, circular."""
    frequency = np.fft.fftfreq(SIDE)
    gain = np.exp(-2 * (np.pi * width) ** 2 * (frequency[:, None] ** 2 + frequency**2))
    blurred = np.fft.ifft2(np.fft.fft2(noise, axes=(0, 1)) * gain[..., None], axes=(0, 1)).real
    return np.asarray(blurred / blurred.std())


def grey_texture() -> Array:
    """Detail all over without colour, falling with frequency."""
    frequency = np.fft.fftfreq(SIDE)
    radius = np.hypot(frequency[:, None], frequency)
    radius[0, 0] = 1
    texture = np.fft.ifft2(np.fft.fft2(draw(3, 1)[..., 0]) / radius**1.5).real
    return np.repeat((0.5 + 0.12 * texture / texture.std())[..., None], 3, axis=2)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_limit_of_white_noise_is_its_level(channels: int) -> None:
    noisy = ramp()[..., :channels] + 0.05 * draw(1, channels)
    assert white_limit(noisy) == pytest.approx(0.05, rel=0.07)


def test_texture_is_no_noise_where_it_has_no_colour() -> None:
    textured = grey_texture()
    assert white_limit(textured) < 1e-6
    assert white_limit(textured + 0.02 * draw(2)) == pytest.approx(0.02, rel=0.07)
    assert white_limit(textured[..., :1]) < 0.6 * estimate_noise(textured[..., :1])


@pytest.mark.parametrize("grey", [False, True])
def test_a_textured_thumbnail_stays_clean_and_noise_is_found_in_it(grey: bool) -> None:
    """Index 11 is textured all over."""
    image = photograph(11, side=256, grey=grey)
    small = unit(image.resize((128, 128)))
    assert measure_noise(small).white < 0.006
    noisy = (small + 0.02 * draw(5, small.shape[2])).clip(0, 1)
    assert measure_noise(noisy).white == pytest.approx(0.02, rel=0.1)


def test_a_small_grey_picture_keeps_its_noise() -> None:
    """64 x 64 pixels are too few to tell content from noise by its fall."""
    small = unit(photograph(5, side=256, grey=True).resize((64, 64)))
    noisy = (small + 0.02 * np.random.default_rng(1).standard_normal(small.shape)).clip(0, 1)
    assert 0.8 < measure_noise(noisy).white / 0.02 < 1.3


def test_clipped_blocks_are_left_out_and_masked_ones_too() -> None:
    half = ramp()
    half[:, :64] = 0
    noisy = (half + 0.05 * draw(1)).clip(0, 1)
    assert white_limit(noisy) == pytest.approx(0.05, rel=0.08)
    half = np.where(np.arange(SIDE)[:, None, None] < 64, 0.0, ramp() + 0.05 * draw(1))  # black bars have no noise at all
    assert white_limit(np.asarray(half)) == pytest.approx(0.05, rel=0.1)
    known = np.ones((SIDE, SIDE), bool)
    known[:, :80] = False
    spoiled = np.where(known[..., None], ramp() + 0.05 * draw(1), 0.5)
    assert white_limit(spoiled, known) == pytest.approx(0.05, rel=0.08)
    assert white_limit(spoiled) < 0.01
    assert white_limit(spoiled, np.zeros_like(known)) == np.inf


@pytest.mark.parametrize("grey", [0.12, 0.5, 0.85])
def test_strong_noise_is_read_as_it_was_before_clipping(grey: float) -> None:
    """75 / 255: at every brightness more pixels are clipped than a block may have; the bar is a tenth."""
    sigma, colours = 75 / 255, grey + np.array([0.0, 0.1, -0.06])
    noisy = (colours + sigma * draw(4)[:, :97]).clip(0, 1)
    assert measure_noise(np.round(255 * noisy) / 255).sigma == pytest.approx(sigma, rel=0.1)


def test_the_spectrum_of_blotchy_colour_noise() -> None:
    """Grey noise of 0.02, colour noise of 0.05 an axis that is blurred by 1.5 pixels: powers within a factor of 1.5."""
    axes = np.concatenate([0.02 * draw(1, 1), 0.05 * low_pass(draw(2, 2), 1.5)], axis=2)
    noisy = ramp() + axes @ OPPONENT
    found = noise_spectrum(noisy, None, LEAST)
    assert found is not None and found.table.shape == (3, 17, 17)
    power = found.on(SIDE, SIDE)
    true = np.abs(np.fft.fft2(axes, axes=(0, 1), norm="ortho")) ** 2
    frequency = np.hypot(np.fft.fftfreq(SIDE)[:, None], np.fft.fftfreq(SIDE))
    for low, high in ((0.06, 0.1), (0.1, 0.15), (0.15, 0.2)):
        inside = (frequency >= low) & (frequency < high)
        for axis in range(3):
            assert power[axis][inside].mean() == pytest.approx(true[inside, axis].mean(), rel=0.5), (low, axis)
    assert power[1:, 64, 64].max() == pytest.approx(LEAST**2, rel=3)  # nothing there but what rounding would leave
    assert found.level == pytest.approx(float(axes.std()), rel=0.25)


def test_white_noise_clean_pictures_and_grey_ones_have_no_spectrum() -> None:
    assert noise_spectrum(ramp() + 0.05 * draw(1), None, LEAST) is None
    assert noise_spectrum(ramp() + 0.05 * draw(1), None, LEAST, np.inf) is None
    assert noise_spectrum(ramp(), None, LEAST) is None
    assert noise_spectrum(grey_texture(), None, LEAST) is None
    grey = ramp()[..., :1] + 0.05 * low_pass(draw(1, 1), 1.5)
    assert noise_spectrum(grey, None, LEAST) is None
    noisy = ramp() + 0.05 * low_pass(draw(1), 1.5)
    assert noise_spectrum(noisy[:96, :96], None, LEAST) is None  # too few blocks
    assert noise_spectrum(noisy[:112, :112], None, LEAST) is not None


def test_colourful_detail_that_not_all_blocks_have_is_no_noise() -> None:
    """Detail of up to four times the noise, more of it to the right: a quarter of the blocks alone would say 0.0496."""
    axes = np.concatenate([0.02 * draw(1, 1), 0.05 * low_pass(draw(2, 2), 1.5)], axis=2)
    detail = np.linspace(0, 0.2, SIDE)[None, :, None] * low_pass(draw(5), 1.0)
    assert noise_spectrum(ramp() + axes @ OPPONENT + detail, None, LEAST) is None, "few blocks are alike"
    found = noise_spectrum(ramp() + axes @ OPPONENT + detail, None, LEAST, np.inf)
    assert found is not None and found.level == pytest.approx(float(axes.std()), rel=0.12)


def test_coloured_noise_of_a_dark_picture() -> None:
    """Nearly every block touches black: the noise is found, a little too weak."""
    dark = (ramp(0.03, 0.1) + 0.05 * low_pass(draw(4), 1.0)).clip(0, 1)
    found = noise_spectrum(dark, None, LEAST)
    assert found is not None and 0.03 < found.level < 0.05


def test_resized_noise_has_a_spectrum_and_a_mask_is_kept_out() -> None:
    smooth = 0.05 * low_pass(draw(4), 1.0)
    known = np.ones((SIDE, SIDE), bool)
    known[40:60, 40:60] = False
    found = noise_spectrum(np.where(known[..., None], ramp() + smooth, 0.0), known, LEAST)
    assert found is not None and found.level == pytest.approx(0.05, rel=0.2)
    assert (found.table[:, 2, 2] / found.table[:, 16, 16] > 30).all()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("peak", [30, 120])
def test_counted_light(peak: int, channels: int) -> None:
    clean = ramp(0.1, 0.9)[..., :channels]
    drawn = np.random.default_rng(0).poisson(peak * clean) / peak
    found = shot_noise(drawn.clip(0, 1), None, LEAST)
    assert found is not None and found.gain == pytest.approx(1 / peak, rel=0.25)
    assert abs(found.floor) < 0.1 / peak
    np.testing.assert_allclose(found.std(np.array([0.25, 0.64])), np.sqrt(np.array([0.25, 0.64]) / peak), rtol=0.12)


def test_counted_light_that_was_clipped() -> None:
    """White paper, where most blocks are clipped, with black strokes, which have next to no noise."""
    paper = ramp(0.5, 1.0)
    paper[:, np.arange(SIDE) % 48 < 8] = 0.02
    drawn = np.round(255 * (np.random.default_rng(0).poisson(60 * paper) / 60).clip(0, 1)) / 255
    found = measure_noise(drawn)
    assert found.shot is not None and found.shot.gain == pytest.approx(1 / 60, rel=0.25)
    assert found.sigma == pytest.approx(math.sqrt(paper.mean() / 60), rel=0.1)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("read", "gain"), [(0.02, 0.0), (0.05, 0.002)])
def test_noise_of_light_falls_with_brightness(read: float, gain: float, channels: int) -> None:
    clean = ramp(0.2, 0.95)[..., :channels]
    light = clean**2.2
    light += np.sqrt(gain * light + read**2) * draw(2, channels)
    seen = light.clip(0, 1) ** (1 / 2.2)
    found = light_noise(seen, None, LEAST)
    assert found is not None and math.sqrt(found.floor) == pytest.approx(read, rel=0.15)
    middle = np.array([0.45, 0.8])  # the derivative of pixels by light, where noise is far weaker than light
    expected = np.sqrt(gain * middle**2.2 + read**2) * middle**-1.2 / 2.2
    np.testing.assert_allclose(found.std(middle), expected, rtol=0.15)
    assert measure_noise(seen).shot == found and "falls with brightness" in found.words()
    assert found.level(clean) == pytest.approx(math.sqrt(((seen - clean) ** 2).mean()), rel=0.2)
    assert found.weakened(0.25).floor == found.floor / 4
    below = np.where(light > 0, seen, light)  # decimal numbers that were not cut off
    assert light_noise(below, None, LEAST) == found
    assert np.isfinite(LightNoise(0.01, -1e-4, LEAST).std(np.zeros(1))).all()
    known = np.arange(SIDE)[:, None] >= np.full(SIDE, 48)
    assert light_noise(np.where(known[..., None], seen, 0.3), known, LEAST) is not None, "of what is known"
    everywhere = np.linspace(0, 1, 9)  # independent variances add, in black too
    np.testing.assert_allclose(found.raised(0.03).raised(0.04).std(everywhere), np.hypot(found.std(everywhere), 0.05))


def test_what_is_no_noise_of_light() -> None:
    """White noise behind gamma, counted light, and texture of the shadows, which is not everywhere in them."""
    for sigma in (0.03, 0.1):
        assert light_noise((ramp(0.02, 0.98) + sigma * draw(1)).clip(0, 1), None, LEAST) is None
    assert light_noise((np.random.default_rng(0).poisson(60 * ramp()) / 60).clip(0, 1), None, LEAST) is None
    shadows = ramp(0.2, 0.95)[..., :1]
    patches = np.kron(np.random.default_rng(3).random((11, 11)) < 0.8, np.ones((12, 12)))[:SIDE, :SIDE, None]
    textured = (shadows**2.2 + 0.04 * patches * draw(4, 1)).clip(0, 1) ** (1 / 2.2)
    assert light_noise(textured, None, LEAST) is None
    grey = (shadows**2.2 + 0.04 * draw(4, 1)).clip(0, 1) ** (1 / 2.2)
    assert light_noise(grey, None, LEAST) is not None
    assert light_noise(np.repeat(grey, 3, axis=2), None, LEAST) is None  # and none of it is left along the axes of colour
    for dark in (False, True):  # patches in the shadows alone are texture, in the bright half they say nothing
        even = (shadows < np.median(shadows)) == dark
        light = shadows**2.2 + 0.04 * (even | (patches > 0)) * draw(4, 1)
        assert (light_noise(light.clip(0, 1) ** (1 / 2.2), None, LEAST) is not None) == dark


def test_white_noise_does_not_grow_with_brightness() -> None:
    for sigma in (0.02, 0.1, 0.2):
        assert shot_noise((ramp(0.02, 0.98) + sigma * draw(1)).clip(0, 1), None, LEAST) is None
    faint = np.random.default_rng(0).poisson(700 * ramp()) / 700
    assert shot_noise(faint.clip(0, 1), None, LEAST) is None  # not worth it
    assert shot_noise(ramp(), None, LEAST) is None
    assert shot_noise(np.full((SIDE, SIDE, 3), 0.5), None, LEAST) is None  # all as bright: no line goes through them
    assert shot_noise(ramp()[:40, :40], None, LEAST) is None
    known = np.zeros((SIDE, SIDE), bool)
    drawn = (np.random.default_rng(0).poisson(30 * ramp()) / 30).clip(0, 1)
    assert shot_noise(drawn, None, LEAST) is not None and shot_noise(drawn, known, LEAST) is None


def test_the_map_of_noise_follows_the_brightness_around() -> None:
    noise = ShotNoise(0.01, 1e-4, LEAST)
    flat = np.full((20, 20, 1), 0.36)
    np.testing.assert_allclose(noise.map(flat), np.sqrt(0.0037))
    flat[10, 10] = 1.0
    assert noise.map(flat)[10, 10, 0] ** 2 == pytest.approx(1e-4 + 0.01 * (0.36 + 0.64 * 0.0398), rel=1e-3)  # 1 / (8 pi)
    photo = np.random.default_rng(0).random((17, 30, 3))
    around = ndimage.gaussian_filter(photo, (2, 2, 0), mode="reflect", truncate=3)
    np.testing.assert_allclose(noise.map(photo), noise.std(around), rtol=1e-10)
    assert noise.raised(0.03).std(np.array([0.5])) == pytest.approx(np.sqrt(0.0051 + 0.0009))
    assert noise.raised(0.0) is noise
    dark = ShotNoise(0.01, -1e-3, 0.002)
    assert dark.std(np.zeros(1)) == pytest.approx(0.002)


def test_measure_noise_says_which_it_is() -> None:
    white = measure_noise(ramp() + 0.05 * draw(1), bits=16)
    assert white.spectrum is None and white.shot is None
    blotchy = measure_noise((ramp() + 0.05 * low_pass(draw(2), 1.5)).clip(0, 1))
    assert blotchy.spectrum is not None and blotchy.shot is None and blotchy.sigma == blotchy.spectrum.level
    counted = measure_noise((np.random.default_rng(0).poisson(60 * ramp()) / 60).clip(0, 1))
    assert counted.shot is not None and counted.spectrum is None and counted.sigma == counted.white


@pytest.mark.parametrize("quality", [40, 75, 92])
def test_blotches_behind_jpeg(quality: int) -> None:
    clean = unit(photograph(6))[:SIDE, :SIDE]
    blotchy, noisy = clean + 15 / 255 * low_pass(draw(2), 1.5), clean + 0.1 * draw(2)
    spectra = []
    for pixels in (blotchy, noisy, clean):
        file = jpeg(Image.fromarray((255 * pixels.clip(0, 1)).round().astype(np.uint8)), quality)
        spectra.append(measure_noise(unit(file), None, 8, read_history(file)).spectrum)
    assert spectra[0] is not None and 0.025 < spectra[0].level < 0.075
    assert spectra[0].table[0, 2, 2] > 4 * spectra[0].table[0, -1, -1]
    assert spectra[1] is None and spectra[2] is None


def test_colourful_detail_behind_jpeg_is_no_noise() -> None:
    """Noise is a floor on which many blocks lie: here some have far more colour than the flattest, as flowers before black."""
    rng = np.random.default_rng(0)
    colours = ndimage.gaussian_filter(rng.standard_normal((192, 160, 3)), (1.5, 1.5, 0))
    place = ndimage.gaussian_filter(rng.standard_normal((192, 160)), 12)
    strength = 0.04 + np.clip(2 * (place - np.quantile(place, 0.08)) / place.std(), 0, 1)[..., None]
    image = Image.fromarray((90 + 70 * strength * colours / colours.std()).round().clip(0, 255).astype(np.uint8))
    file = jpeg(image, 92, subsampling=0)
    found = measure_noise(unit(file), history=read_history(file))
    assert noise_spectrum(unit(file), None, 0.3 * found.compression, math.inf) is not None, "by its power alone it would be"
    assert found.spectrum is None


def test_counted_noise_is_found_below_a_flat_sky() -> None:
    """The flattest blocks are all of one brightness; those of the rest of the picture tell how noise grows."""
    scene = np.full((SIDE, SIDE, 3), 0.8)
    scene[80:] = 0.15 + 0.3 * ramp(0.1, 0.9)[80:] + 2 * (grey_texture()[80:] - 0.5)
    for peak in (40, 80):
        drawn = np.random.default_rng(peak).poisson(scene.clip(0.02, 1) * peak) / peak
        found = shot_noise(drawn.clip(0, 1), None, LEAST)
        assert found is not None and found.gain == pytest.approx(1 / peak, rel=0.25)
    assert shot_noise((scene + 0.1 * draw(1)).clip(0, 1), None, LEAST) is None


def of_one_colour(index: int, level: float) -> Image.Image:
    """A bundled photograph with the same white noise in R, G and B, clipped and rounded."""
    values = np.asarray(photograph(index)) + level * np.random.default_rng(index).standard_normal((192, 192, 1))
    return Image.fromarray(values.round().clip(0, 255).astype(np.uint8))


@pytest.mark.parametrize("level", [10, 25])
def test_noise_that_is_the_same_in_all_colours_is_found(level: float) -> None:
    found = [measure_noise(unit(of_one_colour(index, level))) for index in (1, 6, 12)]
    assert all(one.spectrum is not None and one.spectrum.without_colour for one in found)
    assert [255 * one.sigma / level for one in found] == pytest.approx([1, 1, 1], abs=0.15)


def test_behind_jpeg_too() -> None:
    for index in (6, 12):
        file = jpeg(of_one_colour(index, 25), 90)
        found = measure_noise(unit(file), history=read_history(file))
        assert found.spectrum is not None and 255 * found.spectrum.level == pytest.approx(25, rel=0.2)


def test_a_grey_picture_in_three_channels_has_the_noise_that_it_has_in_one() -> None:
    grey = unit(photograph(6, 25, grey=True))
    stored = measure_noise(np.repeat(grey, 3, axis=2))
    assert stored.sigma == pytest.approx(measure_noise(grey).sigma, rel=0.02)


def test_photographs_have_no_noise_of_all_colours_together() -> None:
    for index in range(0, 16, 2):
        clean = photograph(index)
        assert measure_noise(unit(clean)).spectrum is None
        assert measure_noise(unit(file := jpeg(clean, 75)), history=read_history(file)).spectrum is None


def test_where_one_channel_is_clipped_such_noise_has_colour() -> None:
    """Blue is so dark that it loses half of its noise; the spectrum says how much power the axes of colour have."""
    scene = ramp(0.4, 0.7) * [1, 1, 0.05]
    noisy = np.rint(255 * (scene + 0.1 * draw(1, 1))).clip(0, 255) / 255
    found = measure_noise(noisy)
    assert found.spectrum is not None and found.spectrum.without_colour
    lost = ((noisy - scene).reshape(-1, 3) @ OPPONENT.T)[:, 1:].var()
    assert 0.5 < found.spectrum.table[1:].mean() / lost < 2
