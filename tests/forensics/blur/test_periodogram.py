"""A picture as the evidence sees it: periodograms, what compression left, views; against sums and closed forms."""

import io
import math

import numpy as np
import pytest
from PIL import Image

from leader.forensics.blur.evidence import PRIOR_MEAN, Scene
from leader.forensics.blur.periodogram import basis_of, describe_quantisation, luma_plane, periodogram, plane
from leader.forensics.blur.shapes import Ridge, Shape, ridge_power, softness, transfer, transfer_of
from leader.forensics.blur.views import _shrunk, middle, view
from leader.forensics.jpeg.blocks import LUMA_GAIN
from leader.forensics.noise.estimate import NoiseEstimate
from leader.pictures import from_pil
from leader.pictures.jpeg_history import JpegHistory, standard_luma


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


def test_a_scene_falls_with_its_slope_along_its_direction() -> None:
    weights = np.zeros(9)
    weights[:2] = np.log(0.02), 3.0
    power = Scene(weights).power(100, 100)
    assert power[10, 0] == pytest.approx(0.02) and power[0, 20] == pytest.approx(0.02 / 8)
    assert power[0, 0] == power[0, 1]
    turned = Scene(np.array([*weights[:3], 0.5, *weights[4:]])).power(100, 100)
    assert turned[0, 10] == pytest.approx(0.02 * np.exp(0.5)) and turned[10, 0] == pytest.approx(0.02 * np.exp(-0.5))
    assert PRIOR_MEAN.shape == (9,)


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
    weight, _ = describe_quantisation(luma_plane(picture.pixels), picture.history, at)
    assert weight[at.f < 0.08].all() and not weight[at.f > 0.45].any()
    assert set(np.unique(weight)) <= {0.0, 1.0}
    halved, _ = describe_quantisation(luma_plane(picture.pixels), picture.history, at, shrunk=2)
    assert halved.mean() > weight.mean()  # half the picture reaches half as far


def test_the_floor_is_that_of_rounding_where_every_coefficient_is_alive() -> None:
    noise = 0.5 + 0.2 * np.random.default_rng(0).standard_normal((128, 128))
    steps = standard_luma(90)
    history = JpegHistory(tuple(int(step) for step in steps))
    at = plane(64)
    weight, floor = describe_quantisation(noise, history, at)
    assert weight.all()
    near = np.argmin(np.hypot(at.f * np.cos(at.theta) - 2 / 16, at.f * np.sin(at.theta) - 3 / 16))
    assert floor[near] == pytest.approx((steps[3 * 8 + 2] / 255) ** 2 / 12, rel=0.1)


def test_the_power_of_a_scene_is_that_of_its_basis_and_of_its_slowest_frequency_at_none() -> None:
    scene = Scene(np.array([math.log(0.02), 2.0, 0.1, 0.2, -0.1, 0.05, 0.0, 0.03, 0.01]))
    power = scene.power(70, 9)
    assert scene.weights[1] == 2.0 and power.shape == (70, 9)
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


def test_a_view_knows_the_noise_of_luma_after_averaging() -> None:
    luma = np.random.default_rng(0).random((128, 128))
    for white, guess in ((0.03, 0.03), (0.001, 0.004)):
        seen = view(luma, 64, NoiseEstimate(white, 0.0, 0.004), shrunk=2)
        assert seen is not None and seen.noise == pytest.approx((LUMA_GAIN * guess / 2) ** 2)
        assert np.allclose(seen.floor, (LUMA_GAIN * 0.004 / 2) ** 2) and seen.weight.all()
        power = periodogram(luma.reshape(64, 2, 64, 2).mean((1, 3)), 64)
        assert power is not None and np.allclose(seen.power, power[plane(64).use])


def test_the_middle_is_cut_where_blocks_may_begin() -> None:
    rows, columns = middle((1000, 700, 3), 32)
    assert (rows.start, rows.stop, columns.start) == (96, 96 + 768, 0) and middle((1000, 700))[0].start == 112
    assert _shrunk(np.arange(15.0).reshape(3, 5), 2).tolist() == [[3.0, 5.0]]


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
