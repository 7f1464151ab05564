"""Which kernel made a thumbnail: on fields reduced by Pillow, with its numbers computed a second way."""

import io
import math
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from leader.forensics import Examination, examine
from leader.forensics.size.kernel_features import (
    LONGEST_PART,
    band_powers,
    find_differences,
    find_features,
    find_fractions,
    find_plane,
    find_rhythm,
    find_steps,
)
from leader.forensics.size.kernel_risk import squared_differences, squared_errors
from leader.forensics.size.thumbnails import (
    ALIASING,
    COUNTED_ALIASING,
    COUNTED_DOUBT,
    COUNTED_NOISE,
    KERNELS,
    LEAST_SHARE,
    MUCH,
    SOFT,
    SURE_OF_ALIASING,
    Recognised,
    assume_kernel,
    kernel_chances,
    name_mixture,
    power_law,
    probabilities,
    recognise_kernel,
    take_given_kernel,
)
from leader.operators.pillow_resize import PILLOW_DOWNSAMPLING, pillow_matrix, read_mixture
from leader.pictures import Picture, from_pil
from leader.restoration.restore import prepare
from tests.cheap_prior import CheapPrior, photograph
from tests.forensics.fields import colour, field

SEEDS = range(8)
PILLOWS = tuple(KERNELS)[:5]


def thumbnail(kernel: str, seed: int, factor: int = 4, side: int = 64) -> Image.Image:
    return Image.fromarray(colour(side * factor, seed)).resize((side, side), Image.Resampling[kernel.upper()])


def samples() -> list[NDArray[np.uint8]]:
    """Every other one of the photographs that come with the package, [256, 256, 3]."""
    folder = Path(str(resources.files("leader.samples") / "test"))
    return [np.asarray(Image.open(path).convert("RGB")) for path in sorted(folder.glob("*.png"))[::2]]


@pytest.mark.parametrize("factor", [2, 4])
def test_kernels_that_differ_most_are_told_apart(factor: int) -> None:
    """On eight photographs; neighbouring kernels may be confused in some, nearest neighbour in none."""
    found = {
        made: [
            kernel_chances(
                np.asarray(Image.fromarray(large).resize((256 // factor,) * 2, Image.Resampling[made.upper()])) / 255,
                factor,
                False,
            )
            for large in samples()
        ]
        for made in PILLOWS
    }
    for chances in (chances for rows in found.values() for chances in rows):
        assert set(chances) == set(KERNELS) and sum(chances.values()) == pytest.approx(1)
    means = {made: {name: float(np.mean([row[name] for row in rows])) for name in KERNELS} for made, rows in found.items()}
    for kernel in ("box", "bilinear", "lanczos"):
        assert means[kernel][kernel] > max(0.4, 2 * max(means[made][kernel] for made in PILLOWS if made != kernel)), kernel
    aliasing = {made: sum(row[name] for name in ALIASING) for made, row in means.items()}
    assert aliasing["nearest"] > 0.9 > 3 * max(aliasing[made] for made in PILLOWS[1:])


def without_antialiasing(large: NDArray[np.uint8], factor: int) -> NDArray[np.float64]:
    """A thumbnail as OpenCV's INTER_LINEAR makes it, in [0, 1]."""
    weights = pillow_matrix(len(large), len(large) // factor, "opencv-bilinear").numpy()
    made: NDArray[np.float64] = np.einsum("ri,ijk,cj->rck", weights, large.astype(np.float64), weights, optimize=True)
    return np.asarray(made.round() / 255)


def test_bilinear_without_antialiasing_is_not_put_off_centre() -> None:
    """At factor 4 it looks like nearest neighbour but lies in the middle; at odd factors it is nearest neighbour."""
    for large in samples():
        found = recognise_kernel(without_antialiasing(large, 4), 4, False)
        assert sum(found.probabilities[name] for name in ALIASING) > 0.5
    for factor in (2, 3, 5):
        chances = kernel_chances(without_antialiasing(samples()[0], factor), factor, False)
        assert chances["opencv-bilinear"] == 0 and sum(chances.values()) == pytest.approx(1)
        assert (chances["opencv-bicubic"] == 0) == (factor != 2)


@pytest.mark.parametrize(("factor", "slope"), [(2, 2.4), (2, 3.2), (1.5, 3.2)])
def test_a_box_thumbnail_of_a_soft_picture_is_not_taken_for_nearest_neighbour(factor: float, slope: float) -> None:
    """The worst that was measured: 79 % nearest, half a pixel off, 7 dB below what box gives."""
    for seed in SEEDS:
        plane = np.round(255 * field(round(72 * factor), seed, slope, edges=0)).astype(np.uint8)
        small = Image.fromarray(plane).convert("RGB").resize((72, 72), Image.Resampling.BOX)
        assert kernel_chances(np.asarray(small) / 255, factor, False)["nearest"] < 0.5, seed


def test_the_factor_and_the_compression_count() -> None:
    buffer = io.BytesIO()
    thumbnail("nearest", 1).save(buffer, "JPEG", quality=75)
    opened = from_pil(Image.open(buffer))
    found = examine(opened).recognise_kernel(4).probabilities
    features = find_features(opened.pixels, 4)
    assert found == probabilities(features, 4, True) != probabilities(features, 4, False)
    assert len({tuple(probabilities(features, factor, True).values()) for factor in (1.5, 2, 3)}) == 3


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


@pytest.mark.parametrize(("factor", "down"), [(4, "box"), (1.5, "lanczos"), (2.5, "soft-nearest:20+box:30+lanczos:50")])
def test_the_spread_equals_what_the_kernels_make_of_a_field(factor: float, down: str) -> None:
    """The mean square of the difference of two thumbnails of a Gaussian field, against its closed form."""
    small, large = 120, round(120 * factor)
    scene = field(large, 5, edges=0).astype(np.float64)

    def reduce(kernel: str) -> NDArray[np.float64]:
        matrix = pillow_matrix(large, small, kernel)
        return np.asarray(matrix @ torch.from_numpy(scene) @ matrix.mT)

    found = kernel_spread(reduce("bicubic")[..., None], factor, down)
    assumed = reduce(PILLOW_DOWNSAMPLING[down].kernel if down in PILLOW_DOWNSAMPLING else down)
    for kernel, variance in zip(KERNELS, found):
        expected = float(((reduce(kernel) - assumed)[4:-4, 4:-4] ** 2).mean())
        assert variance == pytest.approx(expected, rel=0.5, abs=1e-12), kernel


def kernel_spread(pixels: NDArray[np.floating], factor: float, down: str) -> NDArray[np.float64]:
    return squared_differences(power_law(find_plane(pixels)[0]), factor, list(KERNELS), down)


def even(**chances: float) -> dict[str, float]:
    return {name: chances.get(name, 0.0) for name in KERNELS}


def test_a_mixture_has_shares_that_sum_to_one_and_no_small_ones() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        chances = dict(zip(KERNELS, (rng.dirichlet(np.full(len(KERNELS), 0.5))).tolist()))
        shares = read_mixture(name_mixture(chances)) or {name_mixture(chances): 1.0}
        sums = {down: sum(chances[name] for name in KERNELS if KERNELS[name] == down) for down in KERNELS.values()}
        kept = {down: chance for down, chance in sums.items() if chance >= LEAST_SHARE}
        assert set(shares) == set(kept) and sum(shares.values()) == pytest.approx(1)
        assert all(abs(share - kept[down] / sum(kept.values())) <= 0.01 for down, share in shares.items())
    assert name_mixture(even(box=0.985, lanczos=0.015)) == "box"
    assert name_mixture(even(nearest=0.3, bicubic=0.7)) == "soft-nearest:30+pillow-bicubic:70"
    assert name_mixture(even(box=0.331, bilinear=0.334, lanczos=0.335)) == "box:33+bilinear:33+lanczos:34"


def test_the_doubt_is_the_spread_about_what_is_assumed() -> None:
    pixels = np.asarray(thumbnail("bicubic", 3)) / 255
    for chances in (even(box=0.5, bicubic=0.3, lanczos=0.2), even(nearest=0.02, box=0.98)):
        found = assume_kernel(pixels, 4, chances, 0.002)
        spread = kernel_spread(pixels, 4, found.down)
        expected = COUNTED_DOUBT * math.sqrt(sum(chances[name] * value for name, value in zip(KERNELS, spread)))
        assert found.doubt == pytest.approx(expected) and expected > 0
    assert assume_kernel(pixels, 4, even(lanczos=1.0)).doubt == 0
    proved = assume_kernel(pixels, 3, even(nearest=1.0))
    spread = kernel_spread(pixels, 3, proved.down)
    assert proved.doubt == pytest.approx(COUNTED_ALIASING * math.sqrt(spread[0])) and proved.down == "soft-nearest"


@pytest.mark.parametrize(("factor", "noise"), [(4, 0.002), (2, 0.03), (1.5, 0.01)])
def test_the_operator_that_is_assumed_costs_least(factor: float, noise: float) -> None:
    """In decibels, by the probabilities; misread is who loses much by it."""
    pixels = np.asarray(thumbnail("box", 5)) / 255
    law = power_law(np.asarray(thumbnail("box", 5).convert("L")) / 255)
    for chances in (even(box=0.4, bilinear=0.6), even(bicubic=0.5, lanczos=0.5), even(nearest=0.3, bilinear=0.7)):
        made = [name for name, chance in chances.items() if chance]
        found = assume_kernel(pixels, factor, chances, noise)
        rivals = [KERNELS[name] for name in made if name != "nearest"]
        errors = squared_errors(law, factor, COUNTED_NOISE * noise, made, [found.down, *rivals, "soft-nearest"])
        share, lost = np.array([chances[name] for name in made]), 10 * np.log10(errors)
        costs = share @ lost
        assert costs[0] <= costs[: 1 + len(rivals)].min() + 0.01, chances
        assert found.misread == pytest.approx(share @ (lost[:, 0] - lost.min(1) > MUCH))


def test_a_likely_kernel_is_not_assumed_where_it_would_ruin_a_less_likely_one() -> None:
    """Bilinear would amplify what nearest neighbour has left; the other way round little is lost."""
    pixels = np.asarray(thumbnail("box", 5)) / 255
    for factor in (2, 3, 4):
        assert assume_kernel(pixels, factor, even(nearest=0.3, bilinear=0.7), 0.001).down != "bilinear"
        assert assume_kernel(pixels, factor, even(nearest=0.001, bilinear=0.999), 0.001).down == "bilinear"


def test_what_leaves_pixels_out_is_assumed_alone_only_where_it_is_proved() -> None:
    pixels = np.asarray(thumbnail("nearest", 3)) / 255
    proved = assume_kernel(pixels, 3, even(nearest=SURE_OF_ALIASING, box=1 - SURE_OF_ALIASING))
    assert proved.down == "soft-nearest" and proved.words().startswith("It was made smaller by nearest (90 % likely)")
    share = SURE_OF_ALIASING - 0.01
    assert assume_kernel(pixels, 3, even(nearest=share, box=1 - share)).down not in SOFT
    both = {**even(nearest=0.5, box=0.05), "opencv-bilinear": 0.3, "opencv-bicubic": 0.15}
    assert assume_kernel(pixels, 4, both).down in SOFT


def test_at_factor_two_nearest_neighbour_is_put_in_the_middle() -> None:
    """On which side it lies nobody knows, and OpenCV's bicubic kernel looks the same; by hand it is taken at its word."""
    pixels = np.asarray(thumbnail("nearest", 3, 2)) / 255
    found = assume_kernel(pixels, 2, {**even(nearest=0.6), "opencv-bicubic": 0.4}, 0.002)
    assert found.down == "opencv-bicubic"
    assert "by nearest or opencv-bicubic (it cannot be told which): opencv-bicubic is assumed" in found.words()
    mean = assume_kernel(pixels, 2, even(nearest=0.3, box=0.4, lanczos=0.3), 0.002)
    assert "soft-nearest" not in mean.down
    assert take_given_kernel(pixels, 2, "nearest").down == "soft-nearest"


def test_opencvs_bicubic_kernel_is_taken_literally_at_small_factors_only() -> None:
    pixels = np.asarray(thumbnail("nearest", 3)) / 255
    found = assume_kernel(pixels, 2, even(**{"opencv-bicubic": 1.0}))
    assert found.down == "opencv-bicubic" and found.doubt == found.misread == 0
    assert found.words() == "It is taken to have been made smaller by opencv-bicubic (100 % likely)."
    assert assume_kernel(pixels, 4, even(**{"opencv-bicubic": 1.0})).down == "soft-centred"


def test_what_is_assumed_is_said_in_words() -> None:
    told = Recognised("pillow-bicubic:60+lanczos:40", even(bicubic=0.6, lanczos=0.4), 0.0031)
    assert str(told.words()) == (
        "It was made smaller by bicubic or lanczos (it cannot be told which): their mean is assumed, and the difference counts "
        "as noise of 0.0031; use down to say how it was made smaller."
    )
    clear = Recognised("box:90+lanczos:10", even(box=0.9, lanczos=0.1), 0.002)
    assert clear.words() == "It was made smaller by box (90 % likely); the doubt left counts as noise of 0.002."
    safest = Recognised("box", even(bicubic=0.5, lanczos=0.3, box=0.2), 0.002)
    assert "bicubic or lanczos or box (it cannot be told which): box is assumed, which loses least, and" in safest.words()
    other = Recognised("box", even(bilinear=0.5, lanczos=0.5), 0.002)
    assert "by bilinear or lanczos (it cannot be told which): box is assumed" in other.words()
    served = Recognised("soft-centred", {**even(nearest=0.7), "opencv-bilinear": 0.26, "opencv-bicubic": 0.04}, 0.01)
    assert "nearest or opencv-bilinear (it cannot be told which): opencv-bilinear is assumed" in served.words()


def test_what_is_told_is_taken_and_only_aliasing_is_left() -> None:
    picture = from_pil(thumbnail("nearest", 2))
    told = take_given_kernel(picture.pixels, 4, "nearest")
    assert told.down == "soft-nearest" and told.probabilities == even(nearest=1)
    assert told.doubt == pytest.approx(COUNTED_ALIASING * math.sqrt(kernel_spread(picture.pixels, 4, "soft-nearest")[0]))
    assert take_given_kernel(picture.pixels, 4, "box").doubt == 0
    plain = take_given_kernel(picture.pixels, 4, "opencv-bilinear")
    assert plain.down == "soft-centred" and plain.misread == 0
    assert plain.doubt == pytest.approx(COUNTED_ALIASING * math.sqrt(kernel_spread(picture.pixels, 4, "soft-centred")[5]))
    literal = take_given_kernel(picture.pixels, 2, "opencv-bicubic")
    assert literal.down == "opencv-bicubic" and literal.doubt == literal.misread == 0
    mixed = take_given_kernel(picture.pixels, 3, "soft-nearest:40+lanczos:60")
    spread = kernel_spread(picture.pixels, 3, mixed.down)
    assert mixed.down == "soft-nearest:40+lanczos:60" and mixed.probabilities == even(nearest=0.4, lanczos=0.6)
    assert mixed.doubt == pytest.approx(COUNTED_DOUBT * math.sqrt(0.4 * spread[0] + 0.6 * spread[4]))


@pytest.mark.parametrize(("factor", "rough"), [(1.5, 0.2), (1.37, 0.05), (2.5, 0.1)])
def test_the_rhythm_of_nearest_neighbour_and_of_box(factor: float, rough: float) -> None:
    """Neighbours differ more where nearest leaves out more, by the place in the whole thumbnail; box is rough where it averages
    fewer pixels; at whole factors there is no rhythm.
    """
    size = (96, 80)
    scene = field(round(96 * factor), 4, edges=0).astype(np.float64)[:, : round(80 * factor)]
    planes = {}
    for kernel in ("nearest", "box", "lanczos"):
        down, across = (pillow_matrix(round(n * factor), n, kernel).numpy() for n in size)
        planes[kernel] = down @ scene @ across.T
    found = {kernel: find_rhythm(plane, factor, size, (0, 0)) for kernel, plane in planes.items()}
    assert found["nearest"][0] > 0.2 > 3 * abs(found["lanczos"][0])
    assert found["box"][1] < -rough < 2 * found["lanczos"][1]
    part = find_rhythm(planes["nearest"][13:90, 21:], factor, size, (13, 21))
    assert part[0] == pytest.approx(found["nearest"][0], abs=0.15)
    assert not find_rhythm(planes["nearest"], 2, size, (0, 0)).any()


def rows_with(between: list[float]) -> NDArray[np.float64]:
    """[30, N]: an edge from 0.2 to 0.7 with these pixels between."""
    return np.tile(np.array([0.2] * 6 + between + [0.7] * 6), (30, 1))


@pytest.mark.parametrize(
    ("between", "low", "high", "events"),
    [
        ([], 0, 0, [0]),
        ([0.15, 0.75], -1 / 12, -1 / 12, [0, 1]),  # overshoot on both sides
        ([0.1], -1 / 6, 0, []),  # on one
        ([0.3, 0.6], 1 / 3, 1 / 3, [4]),  # soft on both sides
        ([0.05, 0.55], -3 / 10, 3 / 10, [2, 5]),
        ([0.4], 0, 2 / 3, [3]),
    ],
)
def test_steps_by_hand(between: list[float], low: float, high: float, events: list[int]) -> None:
    found = find_steps(rows_with(between))
    expected = [float(number in events) for number in range(6)] + [low, high]
    assert np.allclose(found, expected * 2) and np.allclose(find_steps(rows_with(between).T), found)


def test_fractions_by_hand() -> None:
    """Of three pixels across an edge the middle one is like one of the others, or half-way; a flat picture has no edge."""
    assert find_fractions(rows_with([])).tolist() == find_fractions(rows_with([]).T).tolist() == [0, 0, 0, 0, 1, 0]
    assert find_fractions(rows_with([0.44]))[0] > 0.3
    flat = np.full((40, 40), 0.5)
    assert not find_fractions(flat).any() and not find_steps(flat).any()


def test_differences_of_a_wave() -> None:
    """Along rows and columns alternately 1 and 0: each further difference doubles, and those along both are the products."""
    wave = np.add.outer(np.arange(40) % 2, np.zeros(40))
    mean, *found = find_differences(wave + wave.T)
    half = 0.5 / 255
    logs = np.log([1 + half, 2 + half, 4 + half, half, half])
    assert mean == pytest.approx(logs[0]) and np.allclose(np.reshape(found, (5, 4)), (logs - logs[0])[:, None])
    chequered = np.reshape(find_differences(np.add.outer(np.arange(40), np.arange(40)) % 2 / 2)[1:], (5, 4))
    assert np.allclose(np.exp(chequered), np.array([1, 2, 4, 2, 8])[:, None], rtol=0.01)


def test_the_middle_speaks_for_a_large_picture() -> None:
    pixels = np.random.default_rng(1).random((40, LONGEST_PART + 11, 1))
    assert np.array_equal(find_features(pixels, 4), find_features(pixels[:, 5 : 5 + LONGEST_PART], 4))
    assert find_features(pixels, 1.5).shape == (72,)


def test_too_small_or_not_enlarged() -> None:
    tiny = Picture(np.random.default_rng(0).random((12, 20, 3)).astype(np.float32))
    found = examine(tiny).recognise_kernel(4)
    assert set(found.probabilities.values()) == {1 / 7} and found.doubt > 0
    same = examine(tiny).recognise_kernel(1)
    assert (same.down, same.doubt) == ("pillow-bicubic", 0.0)
    flat = examine(Picture(np.full((40, 40, 1), 0.5, np.float32))).recognise_kernel(4)
    assert math.isfinite(flat.doubt) and flat.doubt < 1e-2


@pytest.mark.parametrize("size", [(20, 200), (200, 20)])
def test_a_strip_holds_too_little_to_tell_kernels_apart(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).random((*size, 3)).astype(np.float32)
    assert set(examine(Picture(pixels)).recognise_kernel(4).probabilities.values()) == {1 / 7}


def test_a_thumbnail_whose_making_is_a_guess_is_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recognised: the verdict says how likely the guess is wrong. Told: nothing is guessed."""
    uneven = even(nearest=0.2, box=0.3, bilinear=0.2, bicubic=0.2, lanczos=0.1)
    monkeypatch.setattr(Examination, "recognise_kernel", lambda *_: Recognised("box", uneven, 0.01, 0.2))
    posed = prepare(photograph(24, 24), "sr", factor=2, prior=CheapPrior(), steps=2).posed
    assert posed.misread == pytest.approx(0.2)
    assert prepare(photograph(24, 24), "sr", factor=2, down="box", prior=CheapPrior(), steps=2).posed.misread == 0


def test_the_likeliest_kernels_are_told_the_first_one_first() -> None:
    chances = even(nearest=0.02, box=0.2, bilinear=0.1, bicubic=0.28, lanczos=0.4)
    assert "smaller by lanczos or bicubic or box (" in str(Recognised("box:42+lanczos:58", chances, 0.01).words())
