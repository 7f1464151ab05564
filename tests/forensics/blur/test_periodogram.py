"""Periodograms against exact spectra."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from leader.forensics.blur.evidence import PRIOR_MEAN, Scene
from leader.forensics.blur.periodogram import describe_quantisation, luma_plane, periodogram, plane
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


def test_unknown_tiles_are_left_out() -> None:
    values = np.random.default_rng(1).standard_normal((64, 128))
    known = np.ones((64, 128), dtype=bool)
    known[:, 100:] = False
    only = periodogram(values, 64, known)
    left = periodogram(values[:, :96], 64)
    assert only is not None and left is not None and np.allclose(only, left)
    assert periodogram(values, 64, np.zeros((64, 128), dtype=bool)) is None


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
    left = describe_quantisation(luma_plane(picture.pixels), picture.history, at)
    assert left.weight[at.f < 0.08].all() and not left.weight[at.f > 0.45].any()
    assert set(np.unique(left.weight)) <= {0.0, 1.0}
    halved = describe_quantisation(luma_plane(picture.pixels), picture.history, at, shrunk=2)
    assert halved.weight.mean() > left.weight.mean()  # half the picture reaches half as far


def test_the_floor_is_that_of_rounding_where_every_coefficient_is_alive() -> None:
    noise = 0.5 + 0.2 * np.random.default_rng(0).standard_normal((128, 128))
    steps = standard_luma(90)
    history = JpegHistory(tuple(int(step) for step in steps))
    at = plane(64)
    left = describe_quantisation(noise, history, at)
    assert left.weight.all()
    near = np.argmin(np.hypot(at.f * np.cos(at.theta) - 2 / 16, at.f * np.sin(at.theta) - 3 / 16))
    assert left.floor[near] == pytest.approx((steps[3 * 8 + 2] / 255) ** 2 / 12, rel=0.1)
