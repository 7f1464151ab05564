"""Blocks, steps and chroma of compression by themselves, and shot noise by brightness, against sums written out."""

import numpy as np
import pytest

from leader.forensics.jpeg import block_grid
from leader.forensics.jpeg.blocks import (
    CHROMA,
    DCT,
    LUMA,
    compute_chroma,
    compute_luma,
    finest_detail,
    middle_blocks,
    transform_blocks,
)
from leader.forensics.noise.shot import ShotNoise
from leader.pictures.jpeg_history import standard_luma


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def test_blocks_begin_at_their_offset_and_are_known_where_every_pixel_is() -> None:
    plane, known = 255 * random(21, 30), np.ones((21, 30), bool)
    known[4, 20] = False
    blocks = transform_blocks(plane, (11, 5), known)
    assert blocks.coefficients.shape == (2, 3, 8, 8) and blocks.known.tolist() == [[True, False, True], [True] * 3]
    tile = plane[11:19, 13:21] - 128
    assert np.allclose(blocks.coefficients[1, 1], DCT @ tile @ DCT.T)
    assert np.allclose(DCT @ DCT.T, np.eye(8)) and np.allclose(DCT[0], 8**-0.5)


def test_the_middle_begins_where_blocks_do() -> None:
    assert middle_blocks((100, 300), 16) == (slice(32, 72), slice(128, 168))
    assert middle_blocks((20, 300), 16)[0] == slice(0, 40)


def test_luma_and_chroma_are_those_of_encoders() -> None:
    pixels = random(20, 40, 3)
    assert np.allclose(compute_luma(pixels), 255 * (pixels * LUMA).sum(2)) and np.allclose(
        compute_luma(pixels[..., :1]), 255 * pixels[..., 0]
    )
    found = compute_chroma(pixels, (2, 2), (17, 3))
    assert found.shape == (2, 9, 18)
    part = pixels[1:, 3:]
    assert found[1, 2, 4] == pytest.approx(128 + 255 * float(part[4:6, 8:10].mean((0, 1)) @ CHROMA[1]))
    assert np.array_equal(compute_chroma(pixels, (1, 2), (3, 13)), compute_chroma(pixels[3:, 13:], (1, 2), (0, 0)))
    wide = compute_chroma(pixels, (1, 4), (0, 0))
    assert wide.shape == (2, 20, 10) and wide[0, 3, 2] == pytest.approx(128 + 255 * float(pixels[3, 8:12].mean(0) @ CHROMA[0]))


def test_finest_detail_is_what_averaging_over_two_by_two_takes() -> None:
    plane = np.array([[0.0, 4.0, 1.0, 1.0, 9.0], [0.0, 4.0, 1.0, 1.0, 9.0], [5.0, 5.0, 5.0, 5.0, 5.0]])
    assert finest_detail(plane) == pytest.approx((4 * 4.0 + 4 * 0.0) / 8) and finest_detail(np.zeros((1, 5))) == 0.0


def test_steps_are_found_by_their_multiples() -> None:
    values = np.array([0.0, 7.0, -14.0, 21.0, 3.0] * 8)
    assert block_grid._score(values, 7.0) == pytest.approx((1.0, 24))
    assert block_grid._score(values[:1], 7.0) == (0.0, 0)
    multiples = np.repeat([5.0, -10.0, 15.0, 0.0], 10)
    assert block_grid._best_step(multiples, 40, 24) == pytest.approx((5, 1.0))
    assert block_grid._best_step(multiples, 40, 41) == (0, 0.0) and block_grid._best_step(10 * random(40), 40, 24)[0] == 0
    found = standard_luma(63).reshape(8, 8).copy()
    found[4:] = 0
    assert block_grid._nearest_quality(found) == 63


def test_shot_noise_by_brightness_around_a_pixel() -> None:
    noise = ShotNoise(0.01, -0.001, 0.02)
    assert noise.std(np.array([0.0, 0.5, 1.0, 2.0])).tolist() == pytest.approx([0.02, 0.004**0.5, 0.009**0.5, 0.009**0.5])
    louder = noise.raised(0.03)
    assert (louder.gain, louder.floor, louder.least) == pytest.approx((0.01, -0.0001, 0.0013**0.5))
    point = np.zeros((25, 25, 1))
    point[12, 12] = 1.0
    spread = ShotNoise(1.0, 0.0, 1e-6).map(point)[..., 0] ** 2
    taps = np.exp(-((np.arange(-6, 7) / 2.0) ** 2) / 2)
    taps /= taps.sum()
    assert np.allclose(spread[6:19, 6:19], np.outer(taps, taps))
