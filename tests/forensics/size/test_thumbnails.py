"""Which kernel made a thumbnail: on fields reduced by Pillow, with its numbers computed a second way."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from PIL import Image

from leader.forensics import Examination, examine
from leader.forensics.size.thumbnails import (
    COUNTED_DOUBT,
    KERNELS,
    SURE_OF_NEAREST,
    Recognised,
    band_powers,
    features,
    kernel_differences,
    least_doubt,
    power_law,
    probabilities,
    take_given_kernel,
)
from leader.operators.pillow_resize import pillow_matrix
from leader.pictures import Picture, from_pil
from leader.restoration.restore import prepare
from tests.cheap_prior import CheapPrior, photograph
from tests.forensics.fields import colour, field

SEEDS = range(8)


def thumbnail(kernel: str, seed: int, factor: int = 4, side: int = 64) -> Image.Image:
    return Image.fromarray(colour(side * factor, seed)).resize((side, side), Image.Resampling[kernel.upper()])


@pytest.mark.parametrize("kernel", ["nearest", "bilinear", "lanczos"])
def test_kernels_that_differ_most_are_told_apart(kernel: str) -> None:
    """Of eight fields, six or more; fields are no photographs, so neighbouring kernels may be confused."""
    alike = {"nearest": {"nearest"}, "bilinear": {"bilinear", "bicubic"}, "lanczos": {"lanczos", "bicubic"}}[kernel]
    found = [examine(from_pil(thumbnail(kernel, seed))).recognise_kernel(4).probabilities for seed in SEEDS]
    assert sum(max(chances, key=lambda name: chances[name]) in alike for chances in found) >= 6
    for chances in found:
        assert set(chances) == set(KERNELS) and sum(chances.values()) == pytest.approx(1)


def test_jpeg_has_a_table_of_its_own() -> None:
    buffer = io.BytesIO()
    thumbnail("nearest", 1).save(buffer, "JPEG", quality=75)
    opened = from_pil(Image.open(buffer))
    found = examine(opened).recognise_kernel(4).probabilities
    assert found == probabilities(features(opened.pixels), True) != probabilities(features(opened.pixels), False)


def test_bands_of_white_noise_and_of_waves() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal((256, 256))
    assert np.allclose(band_powers(noise), 0.01, rtol=0.12)  # the smallest band averages some 500 of 65,536
    rows = np.arange(96)[:, None]
    along = band_powers(np.sin(2 * np.pi * 0.225 * rows) + np.zeros((1, 96)))
    both = band_powers(np.sin(2 * np.pi * 0.225 * (rows + rows.T)))
    assert along.argmax() == 6 and both.argmax() == 7  # the fourth band: axes, then diagonals


def test_the_power_law_is_that_of_the_field() -> None:
    level, slope = power_law(field(512, 3, slope=2.4, edges=0).astype(np.float64))
    assert slope == pytest.approx(2.4, abs=0.2)
    power = np.abs(np.fft.fft2(field(512, 3, slope=2.4, edges=0))) ** 2 / 512**2
    assert level - slope * math.log(0.125) == pytest.approx(math.log(power[64, 1:4].mean()), abs=1.0)


def test_differences_equal_what_the_kernels_make_of_a_field() -> None:
    """The mean square of the difference of two thumbnails of a Gaussian field, against its closed form."""
    large = field(512, 5, edges=0).astype(np.float64)
    small = pillow_matrix(512, 128, "bicubic").numpy() @ large @ pillow_matrix(512, 128, "bicubic").numpy().T
    found = kernel_differences(small[..., None], 4)
    made = {name: pillow_matrix(512, 128, name).numpy() for name in ("nearest", "soft-nearest", "box", "bilinear", "lanczos")}
    images = {name: matrix @ large @ matrix.T for name, matrix in made.items()}
    for one, other in (("nearest", "box"), ("box", "bilinear"), ("bilinear", "lanczos"), ("nearest", "soft-nearest")):
        expected = float(((images[one] - images[other])[4:-4, 4:-4] ** 2).mean())
        place = list(KERNELS).index(one), [name.removeprefix("pillow-") for name in KERNELS.values()].index(other)
        assert found[place] == pytest.approx(expected, rel=0.4), (one, other)
    assert np.allclose(np.diag(found)[1:], 0) and found[0, 0] > 0


def test_the_choice_leaves_the_least_doubt() -> None:
    differences = np.array([[4.0, 9, 9, 9, 9], [9, 0, 1, 4, 4], [9, 1, 0, 1, 4], [9, 4, 1, 0, 1], [9, 4, 4, 1, 0]])
    torn = least_doubt({"nearest": 0, "box": 0.5, "bilinear": 0, "bicubic": 0.5, "lanczos": 0}, differences)
    assert torn.down == "bilinear" and torn.doubt == pytest.approx(COUNTED_DOUBT * 1.0)  # between both: never far wrong
    sure = least_doubt({"nearest": 0, "box": 0, "bilinear": 0, "bicubic": 0, "lanczos": 1.0}, differences)
    assert sure.down == "lanczos" and sure.doubt == 0
    assert (
        least_doubt({"nearest": 1.0, "box": 0, "bilinear": 0, "bicubic": 0, "lanczos": 0}, differences).doubt
        == COUNTED_DOUBT * 2
    )


def test_nearest_neighbour_and_the_others_do_not_stand_in_for_each_other() -> None:
    """It is taken where it is clearly more likely, and what it would leave of the others is none of its doubt."""
    differences = np.array([[4.0, 9, 9, 9, 9], [0.1, 1, 9, 9, 9], [9, 9, 1, 9, 9], [9, 9, 9, 1, 9], [9, 9, 9, 9, 1]])
    for chance, down, doubt in ((SURE_OF_NEAREST + 0.01, "soft-nearest", 2.0), (SURE_OF_NEAREST - 0.01, "box", 1.0)):
        found = least_doubt({"nearest": chance, "box": 1 - chance, "bilinear": 0, "bicubic": 0, "lanczos": 0}, differences)
        assert found.down == down and found.doubt == pytest.approx(COUNTED_DOUBT * doubt)


def test_what_is_told_is_taken_and_only_aliasing_is_left() -> None:
    picture = from_pil(thumbnail("nearest", 2))
    told = take_given_kernel(picture.pixels, 4, "nearest")
    assert told.down == "soft-nearest" and told.probabilities["nearest"] == 1
    assert told.doubt == pytest.approx(COUNTED_DOUBT * math.sqrt(kernel_differences(picture.pixels, 4)[0, 0]))
    assert take_given_kernel(picture.pixels, 4, "box").doubt == 0


def test_too_small_or_not_enlarged() -> None:
    tiny = Picture(np.random.default_rng(0).random((12, 20, 3)).astype(np.float32))
    found = examine(tiny).recognise_kernel(4)
    assert set(found.probabilities.values()) == {0.2} and found.doubt > 0
    same = examine(tiny).recognise_kernel(1)
    assert (same.down, same.doubt) == ("pillow-bicubic", 0.0)
    flat = examine(Picture(np.full((40, 40, 1), 0.5, np.float32))).recognise_kernel(4)
    assert math.isfinite(flat.doubt) and flat.doubt < 1e-2


@pytest.mark.parametrize("size", [(20, 200), (200, 20)])
def test_a_strip_holds_too_little_to_tell_kernels_apart(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).random((*size, 3)).astype(np.float32)
    assert set(examine(Picture(pixels)).recognise_kernel(4).probabilities.values()) == {0.2}


@pytest.mark.parametrize(
    ("nearest", "misread"),
    [(0.0, 0.0), (0.35, 0.35), (SURE_OF_NEAREST - 0.01, SURE_OF_NEAREST - 0.01), (0.98, 0.02), (1.0, 0.0)],
)
def test_the_chance_that_nearest_neighbour_was_mistaken(nearest: float, misread: float) -> None:
    """Either taken for another kernel, or another for it: no noise level makes up for that."""
    chances = {"nearest": nearest, "box": 1 - nearest, "bilinear": 0.0, "bicubic": 0.0, "lanczos": 0.0}
    assert least_doubt(chances, np.eye(5)).misread == pytest.approx(misread)


def test_a_thumbnail_whose_making_is_a_guess_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recognised: the verdict says how likely the guess is wrong. Told: nothing is guessed."""
    even = {name: 0.2 + 0.1 * (name == "box") - 0.1 * (name == "lanczos") for name in KERNELS}
    monkeypatch.setattr(Examination, "recognise_kernel", lambda *_: Recognised("box", even, 0.01))
    posed = prepare(photograph(24, 24), "sr", factor=2, prior=CheapPrior(), steps=2).posed
    assert posed.misread == pytest.approx(0.2)
    assert prepare(photograph(24, 24), "sr", factor=2, down="box", prior=CheapPrior(), steps=2).posed.misread == 0


def test_the_likeliest_kernels_are_told_the_first_one_first() -> None:
    chances = {"nearest": 0.02, "box": 0.2, "bilinear": 0.1, "bicubic": 0.28, "lanczos": 0.4}
    assert "reduced by lanczos or bicubic or box: box is assumed (20 % likely)" in Recognised("box", chances, 0.01).words()
