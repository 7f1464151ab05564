"""Blocks, chroma, chains and steps of compression by themselves, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from leader.forensics import examine
from leader.forensics.defects.chains import chains_of
from leader.forensics.defects.neighbours import grown, median_around, shifted
from leader.forensics.jpeg import block_grid
from leader.forensics.jpeg.blocks import CHROMA, DCT, LUMA, block_means, blocks_of, chroma_of, finest_detail, luma_of
from leader.forensics.jpeg.chroma import Reach, reduced
from leader.forensics.jpeg.compression_spectrum import SHARES, _enlarged, _with_last
from leader.forensics.noise.shot import ShotNoise
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.forensics.size import enlarged
from leader.pictures.jpeg_history import standard_luma
from leader.pictures.metadata import Metadata
from leader.pictures.picture import Picture


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape)


def test_blocks_begin_at_their_offset_and_are_known_where_every_pixel_is() -> None:
    plane, known = 255 * random(21, 30), np.ones((21, 30), bool)
    known[4, 20] = False
    blocks = blocks_of(plane, (11, 5), known)
    assert blocks.coefficients.shape == (2, 3, 8, 8) and blocks.known.tolist() == [[True, False, True], [True] * 3]
    tile = plane[11:19, 13:21] - 128
    assert np.allclose(blocks.coefficients[1, 1], DCT @ tile @ DCT.T)
    assert block_means(plane, (11, 5))[1, 1] == pytest.approx(plane[11:19, 13:21].mean())
    assert np.allclose(DCT @ DCT.T, np.eye(8)) and np.allclose(DCT[0], 8**-0.5)


def test_luma_and_chroma_are_those_of_encoders() -> None:
    pixels = random(20, 40, 3)
    assert np.allclose(luma_of(pixels), 255 * (pixels * LUMA).sum(2)) and np.allclose(
        luma_of(pixels[..., :1]), 255 * pixels[..., 0]
    )
    found = chroma_of(pixels, (2, 2), (17, 3))
    assert found.shape == (2, 9, 18)
    part = pixels[1:, 3:]
    assert found[1, 2, 4] == pytest.approx(128 + 255 * float(part[4:6, 8:10].mean((0, 1)) @ CHROMA[1]))
    wide = chroma_of(pixels, (1, 4), (0, 0))
    assert wide.shape == (2, 20, 10) and wide[0, 3, 2] == pytest.approx(128 + 255 * float(pixels[3, 8:12].mean(0) @ CHROMA[0]))


def test_finest_detail_is_what_averaging_over_two_by_two_takes() -> None:
    plane = np.array([[0.0, 4.0, 1.0, 1.0, 9.0], [0.0, 4.0, 1.0, 1.0, 9.0], [5.0, 5.0, 5.0, 5.0, 5.0]])
    assert finest_detail(plane) == pytest.approx((4 * 4.0 + 4 * 0.0) / 8) and finest_detail(np.zeros((1, 5))) == 0.0


def test_chains_are_pixels_of_one_colour_that_touch() -> None:
    marked = np.zeros((6, 8), bool)
    marked[0, 0:3] = marked[1, 3] = True  # a bend over a corner
    marked[4, 0] = marked[4, 7] = marked[5, 6] = True
    pixels = np.zeros((6, 8, 2), np.float32)
    pixels[0, 2] = pixels[1, 3] = 0.5
    chains = chains_of(marked, pixels, 0.1)
    assert sorted(chains.area.tolist()) == [1.0, 2.0, 2.0, 2.0]
    loose = chains_of(marked, pixels, 1.0)
    order = np.argsort(-loose.area)
    assert loose.area[order].tolist() == [4.0, 2.0, 1.0] and loose.length[order].tolist() == [4.0, 2.0, 1.0]
    assert loose.spread[order[0]] == pytest.approx(0.25) and loose.spread[order[1]] == 0
    corner = np.zeros((6, 8), bool)
    corner[5, 6] = True
    chosen = loose.holds(corner)
    assert loose.mask(chosen, (6, 8)).sum() == 2 and loose.mask(chosen, (6, 8))[4, 7]


def test_neighbours_are_shifted_grown_and_sorted() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert shifted(values, 1, -1).tolist() == [[4, 4, 5, 6], [8, 8, 9, 10], [8, 8, 9, 10]]
    flags = np.zeros((5, 7), bool)
    flags[2, 3] = True
    assert grown(flags, 1).sum() == 9 and grown(flags, 2).sum() == 25 and grown(flags, 0).sum() == 1
    plane = random(11, 11).astype(np.float32)
    assert median_around(plane, 2)[5, 5] == np.median(plane[1:10:2, 1:10:2])


def test_errors_of_averaged_chroma_lie_at_the_frequencies_of_pixels() -> None:
    errors = 1.0 + np.arange(64.0).reshape(8, 8)
    assert _with_last(errors).shape == (9, 9) and _with_last(errors)[8, 8] == 64 and _with_last(errors)[8, 2] == errors[7, 2]
    table = _enlarged(errors, (2, 2), 3.0)
    assert np.allclose(table[:4, :4], 4 * errors[::2, ::2]) and np.allclose(table[4:], 3.0 / 0.75)
    wide = _enlarged(errors, (1, 2), 3.0)
    assert np.allclose(wide[:8, :4], 2 * errors[:, ::2]) and np.allclose(wide[:, 4:], 3.0 / 0.5)
    assert np.allclose(_enlarged(errors, (1, 1), 3.0), _with_last(errors))
    # one of luma is one of R, G and B each, which is all along grey
    assert np.allclose(SHARES[:, 0], [3.0, 0.0, 0.0]) and np.allclose(SHARES[:, 1].sum(), 0.344136**2 + 1.772**2)


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


def test_clipped_pixels_are_left_out_of_a_search_and_its_middle_is_looked_at() -> None:
    pixels = np.full((4, 4, 3), 0.5)
    pixels[1, 2, 0], pixels[3, 3, 2] = 0.0, 1.0
    assert np.argwhere(~block_grid._unclipped(pixels)).tolist() == [[1, 2], [3, 3]]
    plane = random(400, 160)
    sample = block_grid._sample(plane, np.ones((400, 160), bool), (0, 0), 100)
    assert sample.shape == (11 * 11, 8, 8) and np.allclose(sample[0], DCT @ (plane[160:168, 40:48] - 128) @ DCT.T)


@pytest.mark.parametrize("factor", [2, 4])
def test_repeated_columns_are_counted(factor: int) -> None:
    plane = random(64, 64 // factor).repeat(factor, 1)
    assert enlarged._share_repeated(plane) == pytest.approx(1 - 1 / factor, abs=0.05)
    assert examine(Picture(random(63, 200, 1).astype(np.float32))).enlargement is None


@pytest.mark.parametrize("before", [0, 3])
def test_repeated_chroma_is_averaged_again(before: int) -> None:
    samples = random(6, 5)
    plane = samples.repeat(2, 0).repeat(2, 1)[before:]
    found = reduced(plane, Reach(12 - before, before, 6, 2, True), Reach(10, 0, 5, 2, True), smooth=False)
    assert np.allclose(found[-1], samples[-1], atol=1e-3) and found.shape == (6, 5)
    assert np.allclose(found[2:], samples[2:], atol=1e-3)


def test_spectra_interpolate_logarithms_and_know_their_level() -> None:
    table = np.array([[[1.0, 4.0], [16.0, 64.0]]])
    on = NoiseSpectrum(table).on(8, 8)
    assert on.shape == (1, 8, 8) and on[0, 0, 0] == pytest.approx(1) and on[0, 4, 4] == pytest.approx(64)
    assert on[0, 2, 0] == pytest.approx(4) and on[0, 0, 6] == pytest.approx(2) and on[0, 6, 2] == pytest.approx(8)
    assert NoiseSpectrum.white(0.3).level == pytest.approx(0.3) and NoiseSpectrum.white(0.3).raised(0.4).level == pytest.approx(
        0.5
    )
    assert NoiseSpectrum(table).level == pytest.approx(np.sqrt(NoiseSpectrum(table).on(64, 64).mean()))


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


def test_nothing_is_written_where_there_is_nothing_to_say() -> None:
    assert Metadata().tree() == {} and Metadata().block() is None
