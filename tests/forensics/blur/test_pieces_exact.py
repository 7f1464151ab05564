"""The parts of a diagnosis by themselves: frequencies, tiles, windows, shapes, against sums and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from leader.forensics.blur import periodogram as spectra
from leader.forensics.blur.evidence import Scene
from leader.forensics.blur.periodogram import basis_of, periodogram, plane, windowed
from leader.forensics.blur.search import Blur, _penalty
from leader.forensics.blur.shapes import SHARP, Ridge, Shape, coarse, ridge_power, softness, transfer, transfer_of
from leader.forensics.blur.views import _shrunk, middle, view
from leader.forensics.blur.width import FACTORS, _scaled, narrowed
from leader.forensics.jpeg.blocks import LUMA_GAIN, blocks_of
from leader.forensics.noise.estimate import NoiseEstimate
from leader.operators import gaussian_kernel, line_kernel
from leader.pictures.jpeg_history import JpegHistory
from tests.forensics.blur.fields import SCENE


def test_the_frequencies_looked_at_are_off_the_axes_and_neither_slow_nor_too_fast() -> None:
    side = 16
    at = plane(side)
    expected = []
    for row in range(side):
        for column in range(side // 2 + 1):
            down = row if row < side // 2 else row - side
            f = math.hypot(down, column) / side
            if abs(down) > 1 and column > 1 and 3 / side <= f <= 0.5 and abs(down) < side / 2 and column < side / 2:
                expected.append((f, math.atan2(down, column)))
    assert np.allclose(np.stack([at.f, at.theta], 1), expected) and at.basis.shape == (len(expected), 9)


def test_the_basis_is_a_power_law_and_how_it_differs_with_direction() -> None:
    theta = 0.3
    found = basis_of(np.array([0.1 * math.e**2]), np.array([theta]))[0]
    waves = [math.cos(2 * theta), math.sin(2 * theta), math.cos(4 * theta), math.sin(4 * theta)]
    assert found.tolist() == pytest.approx([1.0, -2.0, -4.0, *waves, 2 * waves[0], 2 * waves[1]])


def test_the_power_of_a_scene_is_that_of_its_basis_and_of_its_slowest_frequency_at_none() -> None:
    scene = Scene(np.array([math.log(0.02), 2.0, 0.1, 0.2, -0.1, 0.05, 0.0, 0.03, 0.01]))
    power = scene.power(70, 9)
    assert scene.slope == 2.0 and power.shape == (70, 9)
    for row, column in ((3, 2), (66, 4), (0, 0), (69, 0)):
        down = (row if row < 35 else row - 70) / 70
        f = max(math.hypot(down, column / 9), 1 / 70)
        expected = math.exp(float(basis_of(np.array(f), np.array(math.atan2(down, column / 9))) @ scene.weights))
        assert power[row, column] == pytest.approx(expected)


def test_a_periodogram_is_the_mean_over_tiles_under_a_window() -> None:
    luma = np.random.default_rng(0).random((8, 12))
    window = np.outer(np.hanning(9)[:-1], np.hanning(9)[:-1])
    powers = []
    for left in (0, 4):
        tile = luma[:, left : left + 8]
        tile = tile - (tile * window).sum() / window.sum()
        powers.append(np.abs(np.fft.rfft2(tile * window)) ** 2 / (window**2).sum())
    whole = periodogram(luma, 8)
    assert whole is not None and np.allclose(whole, np.mean(powers, 0))
    known = np.ones((8, 12), bool)
    known[5, 1] = False
    half = periodogram(luma, 8, known)
    assert half is not None and np.allclose(half, powers[1])
    known[5, 10] = False
    assert periodogram(luma, 8, known) is None


@pytest.mark.parametrize("shape", [(64, 64), (65, 200), (700, 768)])
def test_tiles_reach_from_end_to_end_and_are_no_more_than_told(shape: tuple[int, int]) -> None:
    tiles = list(spectra._tiles(shape, 64))
    rows, columns = ({(part.start, part.stop) for part in parts} for parts in zip(*tiles))
    for starts, length in ((rows, shape[0]), (columns, shape[1])):
        assert min(starts) == (0, 64) and max(starts) == (length - 64, length)
    assert len(tiles) == len(rows) * len(columns) <= 72
    if shape == (65, 200):  # by halves of a tile
        assert len(rows) == 2 and len(columns) == 6


def test_a_window_mixes_neighbouring_powers() -> None:
    point = np.zeros((6, 6))
    point[2, 3] = 36
    mixed = windowed(point)
    assert np.allclose(mixed[1:4, 2:5], [[1, 4, 1], [4, 16, 4], [1, 4, 1]]) and mixed.sum() == pytest.approx(36)


def test_tables_of_blocks_are_read_between_their_places() -> None:
    table = 10.0 * np.arange(8)[:, None] + np.arange(8.0)
    places = np.array([0.0, 2.25, 6.9, 7.0]), np.array([0.0, 5.5, 7.0, 0.1])
    assert spectra._between(table, *places).tolist() == pytest.approx((10 * places[0] + places[1]).tolist())


def test_what_compression_left_is_seen_where_coefficients_are_alive() -> None:
    """Steps so small that every coefficient lives, and so large that none does but the means."""
    luma = np.random.default_rng(0).random((64, 64))
    at = plane(64)
    fine = spectra.quantised(luma, JpegHistory((1,) * 64), at)
    share = (np.rint(blocks_of(255 * luma).coefficients) != 0).mean((0, 1))[1:, 1:].mean()
    assert fine.weight.all() and fine.floor.mean() == pytest.approx(share / 255**2 / 12, rel=0.02)
    halved = spectra.quantised(luma, JpegHistory((1,) * 64), at, 2)
    assert halved.floor.mean() == pytest.approx(fine.floor.mean() / 4, rel=0.02)
    assert not spectra.quantised(luma, JpegHistory((255 * 8,) * 64), at).weight.any()


def test_a_view_knows_the_noise_of_luma_after_averaging() -> None:
    luma = np.random.default_rng(0).random((128, 128))
    for white, guess in ((0.03, 0.03), (0.001, 0.004)):
        seen = view(luma, 64, NoiseEstimate(white, 0.0, 0.004), shrunk=2)
        assert seen is not None and seen.noise == pytest.approx((LUMA_GAIN * guess / 2) ** 2)
        assert np.allclose(seen.left.floor, (LUMA_GAIN * 0.004 / 2) ** 2) and seen.left.weight.all()
        power = periodogram(luma.reshape(64, 2, 64, 2).mean((1, 3)), 64)
        assert power is not None and np.allclose(seen.power, power[plane(64).use])


def test_the_middle_is_cut_where_blocks_may_begin() -> None:
    rows, columns = middle((1000, 700, 3), 32)
    assert (rows.start, rows.stop, columns.start) == (96, 96 + 768, 0) and middle((1000, 700))[0].start == 112
    assert _shrunk(np.arange(15.0).reshape(3, 5), 2).tolist() == [[3.0, 5.0]]


@pytest.mark.parametrize(("angle", "held"), [(0, True), (7.9, True), (8.1, False), (81.9, False), (82.1, True), (172.1, True)])
def test_motions_along_rows_and_columns_need_more_evidence(angle: float, held: bool) -> None:
    assert _penalty(Shape("line", 9.0, angle)) == (4.0 if held else 0.0) and _penalty(Shape("disk", 9.0, angle)) == 0.0


def test_a_blur_is_written_as_kernels_are_given() -> None:
    def told(shape: Shape) -> tuple[str, str]:
        blur = Blur(shape, 0.05, 1.0, 0.873, SCENE)
        return blur.kernel, blur.in_words()

    assert told(Shape("line", 12.345, 33.4)) == ("line:12.3:33", "a straight motion over 12 pixels at 33 degrees (87 % sure)")
    assert told(Shape("disk", 2.345)) == ("disk:2.35", "a lens out of focus, a disk of radius 2.3 pixels (87 % sure)")
    assert told(Shape("gaussian", 1.0))[0] == "gaussian:1"


def test_shapes_are_scaled_turned_and_searched() -> None:
    assert Shape("line", 4.0, 170.0).scaled(1.5, 25.0) == Shape("line", 6.0, 15.0)
    assert [Shape("line", width).angle_step for width in (2.0, 5.0, 10.0)] == [20.0, 20.0, 10.0]
    shapes, transfers = coarse(64)
    assert shapes[0] == SHARP and np.allclose(transfers[0], 1) and len(shapes) == len(transfers)
    assert [sum(shape.family == name for shape in shapes) for name in ("gaussian", "disk")] == [16, 15]


def test_ridges_and_soft_lenses_in_closed_form() -> None:
    at = plane(64)
    down, right = at.f * np.sin(at.theta), at.f * np.cos(at.theta)
    angle = math.radians(30)
    along = right * math.cos(angle) - down * math.sin(angle)  # rows count downwards
    assert np.allclose(ridge_power(Ridge(5.0, 30.0), at), 1 / (1 + 2 * (math.pi * 5 * along) ** 2))
    assert np.allclose(softness(0.6, at), np.exp(-4 * math.pi**2 * 0.36 * at.f**2))
    line = Shape("line", 6.0, 20.0)
    expected = 0.98 * transfer_of(line.kernel(), at) + 0.02 * ridge_power(Ridge(6.0, 20.0), at)
    assert np.allclose(transfer(line, at), expected)


def test_a_kernel_at_its_own_width_is_itself_and_at_another_its_transform_is_read_elsewhere() -> None:
    taps = line_kernel(5.0, 20.0)
    frame = torch.zeros(32, 32, dtype=torch.float64)
    frame[: taps.shape[0], : taps.shape[1]] = taps
    rolled = torch.roll(frame, [-((side - 1) // 2) for side in taps.shape], (0, 1))
    assert np.allclose(_scaled(taps.numpy(), 1.0, 32), np.fft.fft2(rolled.numpy()))
    wide, narrow = _scaled(taps.numpy(), 2.0, 32), _scaled(taps.numpy(), 0.5, 64)
    assert wide[3, 5] == pytest.approx(_scaled(taps.numpy(), 1.0, 16)[3, 5]) and wide[9, 0] == 0
    assert narrow[6, 10] == pytest.approx(_scaled(taps.numpy(), 1.0, 64)[3, 5])
    assert FACTORS[12] == 1.0 and len(FACTORS) == 21


def test_a_narrowed_gaussian_is_a_narrower_one() -> None:
    found = narrowed(gaussian_kernel(4.0), 0.5)
    assert float(found.sum()) == pytest.approx(1) and float(found.min()) >= 0 and found.shape == (33, 33)
    places = torch.arange(33.0, dtype=torch.float64) - 16
    assert float((found.sum(0) * places**2).sum()) == pytest.approx(4.0, rel=0.02)
