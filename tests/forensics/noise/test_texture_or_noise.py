"""Texture that looks like noise and is none: weak in one colour, not everywhere, or stronger than any noise that is left."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from leader.forensics.defects.drawing import is_drawing
from leader.forensics.noise.coloured import noise_spectrum, unevenness
from leader.forensics.noise.estimate import PATCHY
from leader.forensics.noise.shot import ShotNoise, share_of_weakest_colour, shot_noise
from leader.forensics.noise.texture_limit import CHANCE, noise_everywhere
from leader.pictures.jpeg_history import read_history
from leader.transforms import OPPONENT
from tests.forensics.jpegs import jpeg, unit
from tests.forensics.noise.reading import measure_noise
from tests.forensics.noise.test_shapes_of_noise import LEAST, SIDE, draw, grey_texture, low_pass, ramp


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sigma", [0.01, 0.05])
def test_white_noise_is_everywhere(sigma: float, channels: int) -> None:
    """961 blocks of 15 squares, each pixel in four of them: one in twenty is known to 3 %, the least of axes less well."""
    noisy = ramp()[..., :channels] + sigma * draw(1, channels)
    assert noise_everywhere(noisy) == pytest.approx(sigma, rel=0.08)
    assert noise_everywhere(noisy + 4 * sigma * low_pass(draw(2, channels), 4.0)) == pytest.approx(sigma, rel=0.12)


def test_what_a_tenth_of_the_blocks_do_not_have_is_no_noise() -> None:
    """Fine colourful detail of 0.02 beside a strip that hardly has any: by its patches a picture with noise of 0.02."""
    amount = np.where(np.arange(SIDE) < SIDE // 8, 0.0015, 0.02)[None, :, None]
    detail = ramp() + amount * draw(1)
    # a ninth of the blocks lie there: one in twenty of all is about their median, 0.96 where that of the weakest is 0.484
    assert noise_everywhere(detail) == pytest.approx(0.0015 * (0.96 / 0.484) ** 0.5, rel=0.1)
    half = np.where(np.arange(SIDE) < SIDE // 8, 0.8 * 0.02, 0.02)[None, :, None]
    assert measure_noise(ramp() + half * draw(1), bits=16).white > PATCHY * 0.02
    assert noise_everywhere(detail[:, SIDE // 8 :]) == pytest.approx(0.02, rel=0.08)


def test_the_least_of_what_was_found_counts_where_it_is_not_everywhere() -> None:
    """Detail of 0.02 in every colour, but of 0.001 in a strip whose strong grey texture keeps flat patches away from it."""
    strip = (np.arange(SIDE) < SIDE // 8)[None, :, None]
    picture = ramp() + np.where(strip, 0.001 * draw(1) + 0.1 * draw(2, 1), 0.02 * draw(1))
    assert measure_noise(picture, bits=16).white < 0.1 * 0.02
    assert measure_noise(ramp() + 0.02 * draw(1) + np.where(strip, 0.1 * draw(2, 1), 0), bits=16).white > 0.018


def test_drawn_parts_and_unknown_ones_say_nothing() -> None:
    noisy = ramp() + 0.03 * draw(1)
    framed = noisy.copy()
    framed[:40] = 0.5
    assert noise_everywhere(framed) == pytest.approx(0.03, rel=0.08)
    weak = np.where(np.arange(SIDE)[:, None, None] < 40, ramp() + 0.002 * draw(2), noisy)
    known = np.ones((SIDE, SIDE), bool)
    known[:40] = False
    assert noise_everywhere(weak) < 0.004 and noise_everywhere(weak, known) == pytest.approx(0.03, rel=0.08)
    assert noise_everywhere(weak, np.zeros_like(known)) == np.inf
    assert noise_everywhere(np.full((SIDE, SIDE, 3), 0.5)) == np.inf


def test_grey_texture_that_grows_with_brightness_is_no_counted_light() -> None:
    brightness = ramp(0.1, 0.9).mean(2, keepdims=True).repeat(3, axis=2) ** 1.5
    texture = brightness + np.sqrt(0.01 * brightness) * draw(1, 1)
    texture = texture.clip(0, 1)
    assert shot_noise(texture[..., :1], None, LEAST) is not None, "in grey nothing tells them apart"
    assert shot_noise(texture, None, LEAST) is None
    light = np.random.default_rng(0).poisson(100 * texture) / 100
    found = shot_noise(light.clip(0, 1), None, LEAST)
    assert found is not None
    np.testing.assert_allclose(
        found.std(np.array([0.5, 0.8])), np.sqrt([0.005, 0.008]), rtol=0.15
    )  # 0.41 more with the texture


def test_blotches_are_not_found_in_texture_that_is_far_stronger_everywhere() -> None:
    axes = np.concatenate([0.02 * draw(1, 1), 0.05 * low_pass(draw(2, 2), 1.5)], axis=2)
    grey = 0.25 * low_pass(draw(3, 1), 0.8)
    assert noise_spectrum(ramp() + axes @ OPPONENT, None, LEAST) is not None
    assert noise_spectrum(ramp() + axes @ OPPONENT + grey, None, LEAST) is None
    assert noise_spectrum(ramp() + 0.02 * low_pass(draw(4), 1.0), None, LEAST) is None, "too weak to be told from content"
    assert noise_spectrum(grey_texture() + 0.06 * low_pass(draw(4), 1.0), None, LEAST) is not None


def test_coarse_content_beneath_white_noise_is_no_blotches() -> None:
    """The white noise is a floor for every block; what is coarser than it is not."""
    coarse = np.linspace(0.03, 0.2, SIDE)[None, :, None] * low_pass(draw(4), 1.0)
    assert noise_spectrum(ramp() + 0.03 * draw(1) + coarse, None, LEAST) is None
    assert noise_spectrum(ramp() + 0.03 * draw(1) + coarse, None, LEAST, np.inf) is not None
    assert noise_spectrum(ramp() + 0.03 * draw(1) + 0.06 * low_pass(draw(4), 1.0), None, LEAST) is not None


@pytest.mark.parametrize("seed", [14, 15])
def test_wide_blotches_are_found_though_few_frequencies_make_them_uneven(seed: int) -> None:
    """Blocks of 22 strong coefficients differ by 1.6 and 1.8 times, by chance alone; so few may be content."""
    noisy = ramp() + 0.06 * low_pass(draw(seed), 3.0)
    assert noise_spectrum(noisy, None, LEAST, fewest=22) is not None
    assert noise_spectrum(noisy, None, LEAST) is None


@pytest.mark.parametrize("rings", [3, 5, 8])
def test_unevenness_of_noise_is_that_of_chance_whichever_frequencies_are_strong(rings: int) -> None:
    """Rings of 4, 7, 15, 13, 22 and 21 coefficients count, in two axes: the first of them alone is 8.

    The approximation is 2 % off at 11.
    """
    sizes, strong = np.array([1, 3, 4, 7, 15, 13, 22, 21, 31, 25, 39, 75]), np.zeros((3, 12), bool)
    times = np.random.default_rng(0).chisquare(sizes, (3, 20_000, 12)) / sizes
    strong[:, :3] = True
    assert unevenness(times, strong, 9) == np.inf
    strong[:, : rings + 1] = True
    assert unevenness(times, strong, 9) == pytest.approx(1, abs=0.03)
    strong[2] = False
    assert unevenness(times, strong, 9) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize("quality", [75, 90])
def test_points_of_light_and_dots_behind_jpeg_are_no_noise_and_noise_of_a_lid_is(quality: int) -> None:
    """Noise that is clipped at black leaves a mean of 0.4 of its level: stars are far darker for what they differ."""
    rng = np.random.default_rng(0)
    lit = (rng.random((176, 208, 1)) < 0.03) * rng.uniform(40, 255, (176, 208, 3))
    lid = 25 * rng.standard_normal((176, 208, 3))
    for picture, level in ((lit, 0.0), (255 - lit, 0.0), (lid, 25 / 255), (255 + lid, 25 / 255)):
        file = jpeg(Image.fromarray(picture.round().clip(0, 255).astype(np.uint8)), quality)
        found = measure_noise(unit(file), None, 8, read_history(file))
        assert found.white == pytest.approx(level, rel=0.15) and found.spectrum is None, level
        assert level or found.shot is None


def print_page(paper: int, ink: int, mode: str, size: int = 10) -> Image.Image:
    """200 x 260 pixels full of small print."""
    page = Image.new(mode, (260, 200), (paper,) * len(mode) if len(mode) > 1 else paper)
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(size)
    for row, top in enumerate(range(8, 188, size + 4)):
        words = ("it was the best of times, it was the age of wisdom, the season of light " * 2)[row : row + 46]
        pen.text((10, top), words, fill=(ink,) * len(mode) if len(mode) > 1 else ink, font=font)
    return page


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize(("paper", "ink"), [(255, 0), (0, 230)])
def test_small_print_is_no_noise(mode: str, paper: int, ink: int) -> None:
    page = print_page(paper, ink, mode)
    assert measure_noise(unit(page)).sigma < 0.01
    file = jpeg(page, 85)
    found = measure_noise(unit(file), None, 8, read_history(file))
    assert found.white < 0.02 and found.spectrum is None and found.shot is None
    assert is_drawing(unit(page)) and is_drawing(unit(file)) == (paper == 255)


def test_noise_of_light_is_whole_along_every_axis_where_channels_differ() -> None:
    """A red picture: its channels have other noise each, and every axis has the mean of them that it should."""
    found, mean = ShotNoise(0.02, 0.0, 0.001), np.tile([0.6, 0.4, 0.15], (400, 1))
    drawn = np.random.default_rng(0).standard_normal((400, 3, 8, 8))
    noise = found.std(mean)[..., None, None] * drawn
    assert share_of_weakest_colour(found, noise, mean) == 1
    assert share_of_weakest_colour(found, noise / 2, mean) == pytest.approx(CHANCE**2 / 4, rel=0.06)
