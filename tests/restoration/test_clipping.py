"""Which entries of a picture are taken for clipped, and that a run says so and can be repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import leader
from leader.forensics.noise.shot import ShotNoise
from leader.operators import WeightedPixels
from leader.restoration.repeat import arguments_of
from leader.restoration.restore import Preparation, prepare
from leader.restoration.whitening import Coloured
from tests.restoration.repeating import repeat

SIGMA = 0.15


def scene(height: int = 40, width: int = 56) -> NDArray[np.float64]:
    """Dark on the left, bright on the right, its channels apart."""
    across = np.linspace(0.0, 1.0, width)[None, :, None]
    return np.broadcast_to((across + np.array([-0.05, 0.0, 0.1])).clip(0, 1), (height, width, 3)).copy()


def noisy(bits: int = 8) -> NDArray[Any]:
    values = scene() + SIGMA * np.random.default_rng(2).standard_normal((40, 56, 3))
    top = 2**bits - 1
    stored: NDArray[Any] = (values.clip(0, 1) * top).round().astype(np.uint8 if bits == 8 else np.uint16)
    return stored


def masks(ready: Preparation) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Low and high as [H, W, C]."""
    censored = ready.problem.censored
    assert censored is not None
    low, high = (mask[0].permute(1, 2, 0).numpy() for mask in (censored.low, censored.high))
    return low, high


@pytest.mark.parametrize("bits", [8, 16])
def test_pixels_at_the_ends_of_a_file_are_limits_channel_by_channel(tmp_path: Path, bits: int) -> None:
    pixels = noisy(bits)
    if bits == 8:
        Image.fromarray(pixels).save(tmp_path / "noisy.png")
    given = tmp_path / "noisy.png" if bits == 8 else pixels
    low, high = masks(prepare(given, "denoise", sigma=SIGMA))
    assert np.array_equal(low, pixels == 0) and np.array_equal(high, pixels == 2**bits - 1)
    assert 0 < low.sum() != high.sum() > 0


def test_decimal_numbers_are_clipped_unless_some_lie_beyond() -> None:
    clipped = noisy().astype(np.float32) / 255
    low, _ = masks(prepare(clipped, "denoise", sigma=SIGMA))
    assert np.array_equal(low, clipped == 0)
    beyond = clipped.copy()
    beyond[3, 4, 1] = -0.1
    assert prepare(beyond, "denoise", sigma=SIGMA).problem.censored is None


@pytest.mark.parametrize("choices", [{"sigma": 0.004}, {"sigma": 0.0}, {"sigma": SIGMA, "clipped": False}])
def test_hardly_any_noise_or_no_wish_means_no_limits(choices: dict[str, Any]) -> None:
    assert prepare(noisy(), "denoise", **choices).problem.censored is None


def test_beyond_its_frame_a_blurred_picture_has_no_limits() -> None:
    pixels = noisy()
    ready = prepare(pixels, "deblur-gaussian", sigma=SIGMA, kernel="gaussian:1.2", kernel_doubt=0)
    low, high = masks(ready)
    window = ready.posed.window
    assert window is not None and low.shape != pixels.shape
    rows, columns = slice(window.top, window.top + window.height), slice(window.left, window.left + window.width)
    assert np.array_equal(low[rows, columns], pixels == 0) and low.sum() == (pixels == 0).sum()
    assert high.sum() == (pixels == 255).sum()


@pytest.mark.parametrize(("task", "options"), [("sr", {"factor": 2, "down": "box"}), ("inpaint", {"mask": "random:0.4"})])
def test_other_tasks_know_the_limits_of_their_measurement(task: str, options: dict[str, Any]) -> None:
    ready = prepare(noisy(), task, sigma=SIGMA, **options)
    low, _ = masks(ready)
    reached = ready.problem.operator.reached(ready.problem.y).expand_as(ready.problem.y)[0].permute(1, 2, 0).numpy()
    assert np.array_equal(low, (noisy() == 0) & reached)


def test_weighed_pixels_keep_their_limits() -> None:
    """Noise that grows with brightness: the entry of a pixel is that pixel, and its limit is weighed with it."""
    ready = prepare(noisy(), "denoise", sigma=Coloured(0.1, ShotNoise(0.02, 0.01, 0.01)))
    assert isinstance(ready.problem.operator, WeightedPixels)
    low, _ = masks(ready)
    assert np.array_equal(low, noisy() == 0)
    black = ready.problem.impute().y[ready.problem.censored.low]  # type: ignore[union-attr]
    assert bool((black < ready.problem.y[ready.problem.censored.low]).all())  # type: ignore[union-attr]


@pytest.mark.parametrize("clipped", [True, False])
def test_a_run_says_so_and_is_repeated_to_the_bit(clipped: bool) -> None:
    _, _, kept = repeat(noisy(), "denoise", sigma=SIGMA, clipped=clipped)
    assert kept["clipped"] == (int(((noisy() == 0) | (noisy() == 255)).sum()) if clipped else 0)


def test_runs_written_before_limits_were_known_are_repeated_without() -> None:
    kept = leader.restore(noisy(), "denoise", sigma=SIGMA, check=False).summary()
    del kept["clipped"]
    assert prepare(noisy(), **arguments_of(kept)).problem.censored is None


def test_a_right_answer_is_judged_as_if_nothing_had_been_clipped() -> None:
    """What is left of the measurement is as strong as the noise, and like it without pattern."""
    done = leader.restore(noisy(), "denoise", sigma=SIGMA)
    assert done.verdict is not None
    numbers = done.verdict.numbers
    assert numbers["residual"] == pytest.approx(SIGMA, rel=0.06)
    assert abs(numbers["correlation"] or 0) < 0.06
