"""Periodograms against exact spectra."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from leader.forensics.blur.evidence import PRIOR_MEAN, Scene
from leader.forensics.blur.periodogram import basis_of, luma_plane, periodogram, plane, quantised, windowed
from leader.pictures import from_pil
from leader.pictures.jpeg_history import JpegHistory, standard_luma


def test_white_noise_has_its_variance_at_every_frequency() -> None:
    noise = 0.3 * np.random.default_rng(0).standard_normal((512, 512))
    found = periodogram(noise, 64)
    assert found is not None and found.shape == (64, 33)
    used = found[plane(64).use]
    # at most 64 tiles of which a good half are independent: a mean over 1,000 frequencies is exact to well below 2 %
    assert used.mean() == pytest.approx(0.09, rel=0.02)
    assert used.std() < 0.09 / np.sqrt(64 / 4)


def test_borders_do_not_leak() -> None:
    rows, columns = np.mgrid[:128, :128] / 128.0
    ramp = rows + 2 * columns  # a jump of 3 from side to side, which a plain transform spreads over all frequencies
    found = periodogram(ramp, 128)
    plain = np.abs(np.fft.rfft2(ramp - ramp.mean())) ** 2 / 128**2
    at = plane(128)
    assert found is not None
    high = at.use & (np.hypot(np.fft.fftfreq(128)[:, None], np.fft.rfftfreq(128)[None]) > 0.2)
    assert found[high].max() < 1e-9
    assert plain[high].max() < 1e-9  # a ramp is separable: its leak lies on the axes, which are left out as well
    assert plain[0, 30] > 1e-3


def test_the_window_mixes_neighbours_as_it_is_said() -> None:
    """E of a tile's periodogram is the field's power mixed by (1, 4, 1) / 6 along each side, exactly."""
    side = 32
    power = np.zeros((side, side))
    power[4, 7] = power[-4, -7] = 1.0
    mixed = windowed(power)
    window = np.outer(np.hanning(side + 1)[:-1], np.hanning(side + 1)[:-1])
    rows, columns = np.mgrid[:side, :side]
    wave = np.exp(2j * np.pi * (4 * rows + 7 * columns) / side)
    seen = np.abs(np.fft.fft2(wave * window)) ** 2 / (window**2).sum() / side**2
    seen = seen + np.roll(seen[::-1, ::-1], (1, 1), (0, 1))
    assert np.abs(mixed - seen).max() < 1e-12
    assert mixed.sum() == pytest.approx(2)


def test_unknown_tiles_are_left_out() -> None:
    values = np.random.default_rng(1).standard_normal((64, 128))
    known = np.ones((64, 128), dtype=bool)
    known[:, 100:] = False
    only = periodogram(values, 64, known)
    left = periodogram(values[:, :96], 64)
    assert only is not None and left is not None and np.allclose(only, left)
    assert periodogram(values, 64, np.zeros((64, 128), dtype=bool)) is None


def test_many_tiles_are_spread_over_the_picture() -> None:
    values = np.zeros((64, 64 * 400))
    values[:, -64:] = np.random.default_rng(1).standard_normal((64, 64))
    found = periodogram(values, 64)
    assert found is not None and found.mean() > 0  # the last tile counts


def test_the_plane_leaves_out_the_axes_and_the_mean() -> None:
    at = plane(64)
    assert at.use.shape == (64, 33) and at.basis.shape == (len(at.f), 9)
    assert not at.use[:, :2].any() and not at.use[:2].any() and not at.use[-1].any() and not at.use[32].any()
    assert at.f.min() >= 3 / 64 and at.f.max() <= 0.5


def test_the_basis_at_a_place_that_is_easily_computed() -> None:
    values = basis_of(np.array([0.1 * np.e]), np.array([np.pi / 4]))[0]
    assert values == pytest.approx([1, -1, -1, 0, 1, -1, 0, 0, 1], abs=1e-12)


def test_a_scene_falls_with_its_slope_along_its_direction() -> None:
    weights = np.zeros(9)
    weights[:2] = np.log(0.02), 3.0
    power = Scene(weights).power(100, 100)
    assert power[10, 0] == pytest.approx(0.02) and power[0, 20] == pytest.approx(0.02 / 8)
    assert power[0, 0] == power[0, 1]
    turned = Scene(np.array([*weights[:3], 0.5, *weights[4:]])).power(100, 100)
    assert turned[0, 10] == pytest.approx(0.02 * np.exp(0.5)) and turned[10, 0] == pytest.approx(0.02 * np.exp(-0.5))
    assert PRIOR_MEAN.shape == (9,)


def test_luma_is_that_of_jpeg_and_grey_stays() -> None:
    pixels = np.zeros((2, 2, 3), dtype=np.float32)
    pixels[..., 1] = 1
    assert luma_plane(pixels) == pytest.approx(np.full((2, 2), 0.587))
    assert luma_plane(np.full((2, 2, 1), 0.3)) == pytest.approx(np.full((2, 2), 0.3))


def test_what_jpeg_left() -> None:
    """Smooth content behind a coarse table: low frequencies are alive, high ones are not, and what was added is q^2 / 12."""
    rows, columns = np.mgrid[:128, :128]
    noise = np.random.default_rng(0).standard_normal((128, 128))
    content = 128 + 60 * np.sin(rows / 5) * np.cos(columns / 7) + 3 * noise
    buffer = io.BytesIO()
    Image.fromarray(content.clip(0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=50)
    picture = from_pil(Image.open(buffer))
    assert picture.history is not None
    at = plane(64)
    left = quantised(luma_plane(picture.pixels), picture.history, at)
    assert left.weight[at.f < 0.08].all() and not left.weight[at.f > 0.45].any()
    assert set(np.unique(left.weight)) <= {0.0, 1.0}
    halved = quantised(luma_plane(picture.pixels), picture.history, at, shrunk=2)
    assert halved.weight.mean() > left.weight.mean()  # half the picture reaches half as far


def test_the_floor_is_that_of_rounding_where_every_coefficient_is_alive() -> None:
    noise = 0.5 + 0.2 * np.random.default_rng(0).standard_normal((128, 128))
    steps = standard_luma(90)
    history = JpegHistory(tuple(int(step) for step in steps))
    at = plane(64)
    left = quantised(noise, history, at)
    assert left.weight.all()
    near = np.argmin(np.hypot(at.f * np.cos(at.theta) - 2 / 16, at.f * np.sin(at.theta) - 3 / 16))
    assert left.floor[near] == pytest.approx((steps[3 * 8 + 2] / 255) ** 2 / 12, rel=0.1)
