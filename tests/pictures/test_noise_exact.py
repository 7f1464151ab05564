"""The parts of the noise estimates by themselves, where photographs with tolerances would pass over a slip."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage, optimize

from leader.errors import LeaderError
from leader.pictures import noise_level, quantised_noise, real_noise, shot_noise, texture_limit
from leader.pictures.blocks import blocks_of, chroma_of, finest_detail, luma_of
from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.noise_spectrum import NoiseSpectrum
from leader.pictures.real_noise import NoiseEstimate, last_compression, measure_noise

Array = NDArray[np.float64]
HISTORY = JpegHistory((3,) * 64)


def white(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def test_patches_whose_surroundings_are_half_a_tolerance_above_noise_are_texture() -> None:
    """The mean of four patches spreads half as much as one: what lies at three quarters of the tolerance is left out."""
    choice = noise_level.COLOUR
    mean, spread = noise_level._energy_moments(choice.side, 3)
    around = np.concatenate([np.full(3000, mean), np.full(300, mean + 0.75 * choice.tolerance * spread)])
    level, kept = noise_level._flat_level(white(3300, 75), around, choice, 3)
    assert len(kept) == 3000 and level == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("mean", [0.05, 0.95])
def test_half_of_the_noise_may_be_lost_to_clipping(mean: float) -> None:
    """By the moments of a clipped normal variable: true noise 1.4 times what is left of it."""
    sigma = 0.1
    lean = optimize.brentq(lambda at: noise_level._clipped_moments(np.array([at]), sigma)[0][0] - mean, -0.5, 1.5)
    left = math.sqrt(float(noise_level._clipped_moments(np.array([lean]), sigma)[1][0]))
    assert sigma > 1.35 * left
    assert noise_level.before_clipping(left, np.array([mean])) == pytest.approx(sigma, rel=1e-3)


def test_a_patch_is_saturated_where_one_of_its_channels_is() -> None:
    patches = np.full((20, 3, 5, 5), 0.5)
    patches[12:, 1] = 1.0
    assert noise_level.find_unsaturated(patches).tolist() == [True] * 12 + [False] * 8


@pytest.mark.parametrize(("side", "patches"), [(10, 16), (20, 196)])
def test_a_noise_level_takes_four_patches_for_every_number_in_one(side: int, patches: int) -> None:
    known = np.zeros((40, 40), bool)
    known[5 : 5 + side, 8 : 8 + side] = True
    image = 0.5 + 0.05 * white(40, 40, 1)
    if patches < 4 * 49:
        with pytest.raises(LeaderError, match=f"Only {patches} patches of 7 x 7 known pixels"):
            noise_level.estimate_noise(image, known)
    else:
        assert noise_level.estimate_noise(image, known) > 0


def test_one_number_for_all_noise_leaves_the_spectrum_of_a_compression_to_its_own() -> None:
    loud = NoiseSpectrum.white(0.5)
    assert NoiseEstimate(0.01, 0.02, 0.001, HISTORY, loud).sigma == 0.02
    assert NoiseEstimate(0.01, 0.0, 0.001, None, loud).sigma == pytest.approx(0.5)
    assert NoiseEstimate(0.01, 0.0, 0.03).sigma == 0.03 and NoiseEstimate(0.04, 0.02, 0.03, HISTORY).sigma == 0.04


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compression of known error, without a look at pixels; blotches wherever somebody asks for them."""
    answers: dict[str, Any] = {
        "last_compression": HISTORY,
        "compression_error": 0.01,
        "step_error": 0.05,
        "_white": 0.001,
        "noise_spectrum": NoiseSpectrum.white(0.3),
        "compression_spectrum": NoiseSpectrum.white(0.02),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(real_noise, name, lambda *_, answer=answer, **__: answer)


def test_blocks_with_content_count_where_detail_is_amplified_alone(played: None) -> None:
    image = np.full((32, 32, 1), 0.5)
    plain, amplified = measure_noise(image), measure_noise(image, amplified=True)
    assert (plain.compression, amplified.compression) == (0.01, 0.05)
    assert amplified.spectrum is not None and np.allclose(amplified.spectrum.table, 0.5 * 0.02**2)


def test_blotches_are_not_looked_for_around_holes(played: None) -> None:
    image = np.full((32, 32, 1), 0.5)
    found = measure_noise(image).spectrum
    assert found is not None and found.level == pytest.approx(0.3)
    assert measure_noise(image, np.ones((32, 32), bool)).spectrum is None


@pytest.mark.parametrize("search", [True, False])
def test_what_a_file_says_of_pixels_that_were_changed_since_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, search: bool
) -> None:
    image, other = np.full((32, 32, 1), 0.5), JpegHistory((5,) * 64, found=True)
    monkeypatch.setattr(real_noise, "find_history", lambda _: other)
    monkeypatch.setattr(real_noise, "belongs", lambda *_: True)
    assert last_compression(image, HISTORY, search=search) is HISTORY
    monkeypatch.setattr(real_noise, "belongs", lambda *_: False)
    assert last_compression(image, HISTORY, search=search) is (other if search else None)


def test_chroma_was_enlarged_where_its_finest_detail_is_far_weaker_than_the_next() -> None:
    def tinted(plane: Array) -> Array:
        return 0.5 + 0.05 * np.stack([plane, -0.3 * plane, -plane], -1)

    rough = white(64, 64)
    for plane, enlarged in (
        (rough, False),
        (ndimage.gaussian_filter(rough, 0.9), False),
        (rough[::2, ::2].repeat(2, 0).repeat(2, 1), True),
    ):
        image = tinted(plane)
        fine, coarse = (sum(finest_detail(one) for one in chroma_of(image, (side, side), (0, 0))) for side in (1, 2))
        assert (fine < 0.3 * coarse) == enlarged == real_noise._chroma_was_enlarged(image)
        if plane is not rough and not enlarged:
            assert fine < coarse, "weaker, but not far"


def test_the_error_of_a_compression_holds_the_rounding_of_its_decoder() -> None:
    image = np.clip(0.5 + 0.02 * white(32, 32, 1), 0, 1)
    blocks = blocks_of(luma_of(image), (0, 0))
    expected = math.sqrt(float(quantised_noise.band_errors(blocks, HISTORY.luma_steps()).mean()) + 1 / 12) / 255
    assert quantised_noise.compression_error(image, HISTORY, None) == pytest.approx(expected)


def test_blocks_near_black_and_white_say_nothing_of_shot_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Array, Array]] = []
    monkeypatch.setattr(shot_noise, "_line", lambda bright, spread, least: asked.append((bright, spread)))
    ramp = np.linspace(0.02, 0.98, 160)[None, :, None] + 0.04 * white(96, 160, 1)
    shot_noise.shot_noise(ramp, None, 0.001)
    ((brightness, variance),) = asked
    assert bool((np.minimum(brightness, 1 - brightness) > 2 * np.sqrt(variance)).all())
    assert len(brightness) >= 100 and brightness.max() > 0.85


def test_content_is_fitted_in_blocks_that_are_not_saturated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def flat(blocks: Any, usable: Any) -> Any:
        asked.append(usable)
        return usable

    monkeypatch.setattr(texture_limit, "flat_blocks", flat)
    plane = np.clip(0.5 + 0.02 * white(64, 96, 1), 0, 1)
    plane[:, 48:] = 1.0
    texture_limit.white_limit(plane)
    assert asked[0].shape == (8, 12) and asked[0][:, :6].all() and not asked[0][:, 6:].any()


@pytest.mark.parametrize(("side", "told"), [(20, False), (40, True)])
def test_too_few_known_blocks_set_no_limit(side: int, told: bool) -> None:
    known = np.zeros((64, 64), bool)
    known[4 : 4 + side, 4 : 4 + side] = True
    assert math.isfinite(texture_limit.white_limit(0.5 + 0.02 * white(64, 64, 3), known)) == told
