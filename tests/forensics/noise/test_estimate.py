"""The noise of files as people have them: behind JPEG of several kinds, and of JPEG alone."""

from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from leader.forensics import Examination, NotExamined, examine
from leader.forensics.jpeg.quantised_noise import compression_error, noise_before
from leader.forensics.noise.estimate import NoiseEstimate, crop_for_noise
from leader.forensics.noise.level import estimate_noise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.pictures import from_pil
from leader.pictures.jpeg_history import read_history, standard_luma
from leader.pictures.picture import Picture
from leader.restoration.pose import pose_picture
from tests.forensics.jpegs import jpeg, photograph, unit
from tests.forensics.noise.reading import measure_noise

BOTH: tuple[tuple[str, dict[str, Any]], ...] = (("denoise", {}), ("deblur", {"kernel": "gaussian:2", "kernel_doubt": 0.0}))
CHOSEN = (1, 6, 12)


def of_file(image: Image.Image, quality: int, subsampling: int = 2, **options: Any) -> NoiseEstimate:
    picture = from_pil(jpeg(image, quality, subsampling, **options))
    return measure_noise(picture.pixels, None, picture.bits, picture.history)


@pytest.mark.parametrize("subsampling", [0, 2])
@pytest.mark.parametrize(("level", "quality"), [(10, 75), (10, 98), (25, 75), (25, 90), (50, 75), (50, 98)])
def test_white_noise_behind_jpeg(level: float, quality: int, subsampling: int) -> None:
    ratios = np.array([255 * of_file(photograph(index, level), quality, subsampling).sigma / level for index in CHOSEN])
    assert np.abs(ratios - 1).max() <= 0.15, ratios


def test_texture_all_over_hides_weak_noise() -> None:
    """Without a flat block the fit takes some of the texture for noise."""
    assert 1 <= 255 * of_file(photograph(11, 10), 98).sigma / 10 <= 1.3
    assert 255 * of_file(photograph(11, 25), 75).sigma == pytest.approx(25, rel=0.15)


def test_progressive_grey_and_re_saved_files() -> None:
    assert 255 * of_file(photograph(6, 25), 80, progressive=True).sigma == pytest.approx(25, rel=0.15)
    assert 255 * of_file(photograph(6, 25, grey=True), 80).sigma == pytest.approx(25, rel=0.15)
    copy = unit(jpeg(photograph(6, 25), 80))[5:, 3:]
    assert 255 * measure_noise(copy).sigma == pytest.approx(25, rel=0.15)
    assert 255 * estimate_noise(copy) < 5  # what patches of colour say


@pytest.mark.parametrize("quality", [40, 75, 92])
def test_clean_jpegs_have_the_noise_of_their_compression(quality: int) -> None:
    ratios = []
    for index in CHOSEN:
        clean = photograph(index)
        file = jpeg(clean, quality)
        error = float(np.sqrt(((unit(file) - unit(clean)) ** 2).mean()))
        ratios.append(of_file(clean, quality).sigma / error)
    assert 0.7 <= np.median(ratios) <= 1.3 and min(ratios) > 0.6 and max(ratios) < 1.6, ratios


def test_compression_counts_less_the_better_the_quality() -> None:
    errors = []
    for quality in (20, 50, 75, 90, 97):
        file = jpeg(photograph(6), quality)
        history = read_history(file)
        assert history is not None
        errors.append(compression_error(unit(file), history, None))
    assert errors == sorted(errors, reverse=True) and errors[0] > 2 * errors[-1]


@pytest.mark.parametrize("noise", [4.0, 8.0, 30.0])
def test_noise_alone_is_found_behind_coarse_steps(noise: float) -> None:
    """At quality 75 and 4 grey levels hardly any coefficient is left."""
    steps = standard_luma(75).reshape(8, 8)
    drawn = noise * np.random.default_rng(0).standard_normal((400, 8, 8))
    assert noise_before(np.rint(drawn / steps) * steps, steps) == pytest.approx(noise, rel=0.1)


def test_a_mask_leaves_blocks_out() -> None:
    picture = from_pil(jpeg(photograph(6, 25), 80))
    known = np.ones(picture.pixels.shape[:2], bool)
    known[40:100, 30:150] = False
    noise = measure_noise(picture.pixels * known[..., None], known, 8, picture.history)
    assert noise.history is not None and 255 * noise.sigma == pytest.approx(25, rel=0.15)


def test_enlarged_chroma_without_blocks_does_not_hide_noise() -> None:
    """At quality 100 every step is 1: no grid shows, but the chroma of 4:2:0 has lost its finest detail."""
    copy = unit(jpeg(photograph(6, 25), 100))
    noise = measure_noise(copy)
    assert noise.history is None and 255 * noise.sigma == pytest.approx(25, rel=0.15)
    assert 255 * estimate_noise(copy) < 5


def test_where_detail_is_amplified_compression_counts_more_in_a_smooth_picture() -> None:
    smooth = jpeg(photograph(6).filter(ImageFilter.GaussianBlur(4)), 75)
    seen = examine(from_pil(smooth))
    assert not isinstance(seen.noise, NotExamined) and not isinstance(seen.amplified_noise, NotExamined)
    plain, amplified = seen.noise.sigma, seen.amplified_noise.sigma
    assert plain < amplified == pytest.approx(0.0097, rel=0.02)
    posed = [pose_picture(from_pil(smooth), task, None, options) for task, options in BOTH]
    assert posed[0].noise is None and posed[0].sigma == pytest.approx(plain, rel=1e-4)
    assert isinstance(posed[1].noise, NoiseSpectrum) and plain < posed[1].sigma  # by band: the low ones count for more


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(8, 8), (12, 20), (15, 40), (16, 16), (21, 15)])
def test_small_pictures_are_measured_or_refused_in_a_sentence(size: tuple[int, int], channels: int) -> None:
    values = np.random.default_rng(0).random((*size, channels)) * 0.2 + 0.4
    for known in (None, np.ones(size, bool)):
        found = Examination(Picture(values.astype(np.float32)), known).noise
        assert "give the noise level" in found.reason if isinstance(found, NotExamined) else found.sigma > 0


def test_the_middle_of_a_large_picture_is_cut_where_blocks_begin() -> None:
    """2,700 x 1,600 pixels: 1,536 of each side, from (1164 // 2, 64 // 2) down to multiples of 16."""
    rows, columns = np.mgrid[:2700, :1600].astype(np.float32)
    known = rows > 600
    part, inside = crop_for_noise(np.stack([rows, columns], -1), known)
    assert part.shape == (1536, 1536, 2) and tuple(part[0, 0]) == (576, 32) and tuple(part[-1, -1]) == (576 + 1535, 32 + 1535)
    assert inside is not None and int(np.argmax(inside[:, 0])) == 601 - 576
    whole, everywhere = crop_for_noise(np.zeros((300, 200, 3)), None)
    assert whole.shape == (300, 200, 3) and everywhere is None
