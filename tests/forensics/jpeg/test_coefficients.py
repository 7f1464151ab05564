"""Quantised coefficients taken again from pixels, against files whose coefficients are known."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from leader.forensics.jpeg.chroma import SPRING, Reach, reduce_chroma
from leader.forensics.jpeg.coefficients import Coefficients, Plane, read_coefficients
from leader.pictures.jpeg_history import JpegHistory
from leader.pictures.reading import from_pil
from tests.forensics.jpegs import jpeg, photograph, unit

Array = NDArray[np.float64]


def exact_share(found: Coefficients) -> float:
    """Share of the coefficients that were found exactly."""
    return float(np.concatenate([plane.exact.ravel() for plane in found.planes]).mean())


def inverse_dct(blocks: Array) -> Array:
    """Blocks [R, C, 8, 8] of coefficients as a plane, by the formula of the standard, summed term by term."""
    rows, columns = blocks.shape[:2]
    plane = np.zeros((rows, columns, 8, 8))
    place = np.arange(8)
    for k in range(8):
        for m in range(8):
            size = (np.sqrt(0.5) if k == 0 else 1) * (np.sqrt(0.5) if m == 0 else 1) / 4
            wave = np.outer(np.cos((2 * place + 1) * k * np.pi / 16), np.cos((2 * place + 1) * m * np.pi / 16))
            plane += blocks[:, :, k, m, None, None] * size * wave
    return plane.swapaxes(1, 2).reshape(8 * rows, 8 * columns)


def known_blocks(rows: int, columns: int, steps: Array, seed: int) -> Array:
    """Multiples of the steps, few and small enough to keep the plane away from black and white."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice([-2, -1, 1, 2], (rows, columns, 8, 8)) * (rng.random((rows, columns, 8, 8)) < 0.06)
    return np.asarray(drawn * steps)


def enlarged(samples: Array, factor: int) -> Array:
    """One axis of libjpeg's smooth enlargement, written out: 3/4 of the nearer sample, 1/4 of the next, ends repeated."""
    if factor == 1:
        return samples
    out = np.zeros((2 * len(samples), samples.shape[1]))
    for i in range(len(samples)):
        out[2 * i] = 0.75 * samples[i] + 0.25 * samples[max(i - 1, 0)]
        out[2 * i + 1] = 0.75 * samples[i] + 0.25 * samples[min(i + 1, len(samples) - 1)]
    return out


def decoded(planes: list[Array], sampling: tuple[int, int]) -> Array:
    """Planes of luma and chroma around 0 as a decoder shows them: 8-bit RGB in [0, 1]."""
    luma, *chroma = planes
    blue, red = (enlarged(enlarged(plane, sampling[0]).T, sampling[1]).T for plane in chroma)
    y = luma + 128
    rgb = np.stack([y + 1.402 * red, y - 0.344136 * blue - 0.714136 * red, y + 1.772 * blue], axis=-1)
    assert rgb.min() > 1 and rgb.max() < 254
    return np.asarray(np.rint(rgb) / 255)


LUMA = np.add.outer(range(8), range(8)) * 2.0 + 8
CHROMA = np.add.outer(range(8), range(8)) * 3.0 + 10


def history(sampling: tuple[int, int], **more: Any) -> JpegHistory:
    tables = [tuple(int(step) for step in table.reshape(-1)) for table in (LUMA, CHROMA)]
    return JpegHistory(tables[0], tables[1], sampling, **more)


def known_picture(sampling: tuple[int, int], units: tuple[int, int] = (3, 4)) -> tuple[Array, list[Array]]:
    rows, columns = units[0] * sampling[0], units[1] * sampling[1]
    truth = [known_blocks(rows, columns, LUMA, 0), *(known_blocks(*units, CHROMA, seed) for seed in (1, 2))]
    return decoded([inverse_dct(blocks) for blocks in truth], sampling), truth


@pytest.mark.parametrize("sampling", [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_known_coefficients_are_found_again(sampling: tuple[int, int]) -> None:
    pixels, truth = known_picture(sampling)
    found = read_coefficients(pixels, history(sampling))
    assert found.frame == pixels.shape[:2] and (found.top, found.left) == (0, 0)
    assert exact_share(found) == 1
    for plane, blocks, steps in zip(found.planes, truth, found.steps(), strict=True):
        assert np.count_nonzero(blocks) > 30
        np.testing.assert_array_equal(plane.values, blocks)
        empty = blocks == 0
        empty[..., 0, 0] = False
        np.testing.assert_array_equal(plane.zero(steps), empty)
        assert not plane.doubt().any()


@pytest.mark.parametrize(("top", "left"), [(5, 0), (3, 11), (8, 7), (17, 2)])
@pytest.mark.parametrize("sampling", [(1, 1), (2, 2)])
def test_a_crop_keeps_the_blocks_that_are_whole(top: int, left: int, sampling: tuple[int, int]) -> None:
    pixels, truth = known_picture(sampling, (4, 4))
    unit_rows, unit_columns = 8 * sampling[0], 8 * sampling[1]
    part = pixels[top:, left:]
    where = (-top % unit_rows, -left % unit_columns)
    found = read_coefficients(part, history(sampling, offset=where, found=sampling == (1, 1)))
    assert (found.top, found.left) == (-where[0] % unit_rows, -where[1] % unit_columns)
    first = (top // unit_rows, left // unit_columns)
    for number, (plane, blocks) in enumerate(zip(found.planes, truth, strict=True)):
        scale = (1, 1) if number else sampling
        kept = blocks[first[0] * scale[0] :, first[1] * scale[1] :]
        assert plane.values.shape == kept.shape
        inner = (slice(scale[0], None), slice(scale[1], None))  # the first unit may be cut
        exact = plane.exact[inner]
        assert exact.mean() > 0.9
        np.testing.assert_array_equal(plane.values[inner][exact], kept[inner][exact])


@pytest.mark.parametrize("cut", [(0, 0), (8, 0), (0, 8), (21, 13)])
def test_the_unit_of_chroma_is_found_where_no_file_tells_it(cut: tuple[int, int]) -> None:
    pixels, truth = known_picture((2, 2), (6, 6))
    part = pixels[cut[0] :, cut[1] :]
    guess = history((2, 2), offset=(-cut[0] % 8, -cut[1] % 8), found=True)
    found = read_coefficients(part, guess)
    assert found.history.sampling == (2, 2)
    assert [first % 16 for first in found.history.offset] == [-side % 16 for side in cut]
    kept = truth[1][cut[0] // 16 :, cut[1] // 16 :][1:-1, 1:-1]
    np.testing.assert_array_equal(found.planes[1].values[1:-1, 1:-1], kept)


def test_chroma_that_was_repeated_is_understood_too() -> None:
    _, truth = known_picture((2, 2), (4, 4))
    planes = [inverse_dct(blocks) for blocks in truth]
    big = [plane.repeat(2, 0).repeat(2, 1) for plane in planes[1:]]
    pixels = decoded([planes[0], *big], (1, 1))
    found = read_coefficients(pixels, history((2, 2), found=True))
    np.testing.assert_array_equal(found.planes[1].values, truth[1])


@pytest.mark.parametrize("sampling", [0, 1, 2])
@pytest.mark.parametrize("quality", [10, 40, 75, 90])
def test_files_of_pillow(quality: int, sampling: int) -> None:
    """Nearly all coefficients of a photograph are exact, and encoding them again gives the same file's pixels."""
    file = jpeg(photograph(3), quality, sampling)
    picture = from_pil(file)
    assert picture.history is not None
    found = read_coefficients(picture.pixels, picture.history)
    assert exact_share(found) > 0.85
    file = jpeg(photograph(3), quality, sampling)
    file.draft("YCbCr", file.size)  # luma as stored, before it is mixed into R, G and B
    luma = np.asarray(file, dtype=np.float64)[..., 0] - 128
    again = inverse_dct(found.planes[0].values.astype(np.float64))
    exact = found.planes[0].exact.all(axis=(2, 3)).repeat(8, 0).repeat(8, 1)
    inside = exact & (luma > -127) & (luma < 126)
    if inside.any():
        assert float(np.quantile(np.abs(again - luma)[inside], 0.99)) <= 1.0


@pytest.mark.parametrize("size", [(193, 192), (100, 77), (64, 75)])
def test_sizes_that_cut_blocks(size: tuple[int, int]) -> None:
    image = photograph(2).crop((0, 0, 192, 192)).resize(size)
    for sampling, side in ((0, 8), (2, 16)):
        file = jpeg(image, 50, sampling)
        picture = from_pil(file)
        assert picture.history is not None
        found = read_coefficients(picture.pixels, picture.history)
        assert found.frame == (-(-size[1] // side) * side, -(-size[0] // side) * side)
        assert (found.height, found.width) == (size[1], size[0])
        whole = found.planes[0].exact[: size[1] // 8, : size[0] // 8]
        assert whole.mean() > 0.9
        cut = found.planes[0].exact[:, size[0] // 8 :]
        assert not cut.any()  # what lies beyond the border is not known


def test_clipped_blocks_are_not_called_exact() -> None:
    """Beside grey, black and white dots, overdriven: what was clipped cannot be known."""
    values = np.full((64, 64, 3), 128, np.uint8)
    values[:, 32:] = 255 * (np.random.default_rng(0).random((64, 32, 1)) < 0.5)
    picture = from_pil(jpeg(Image.fromarray(values), 30, 0))
    assert picture.history is not None
    plane = read_coefficients(picture.pixels, picture.history).planes[0]
    assert plane.exact[:, 4:].mean() < 0.5 and plane.doubt()[:, 4:].max() > 5
    assert plane.exact[:, :4].all() and not plane.doubt()[:, :4].any()


def test_grey_pictures() -> None:
    picture = from_pil(jpeg(photograph(1, grey=True), 60, 0))
    assert picture.history is not None
    found = read_coefficients(picture.pixels, picture.history)
    assert len(found.planes) == len(found.steps()) == 1 and exact_share(found) > 0.7
    colour = from_pil(jpeg(photograph(1), 60, 2))
    assert colour.history is not None
    only: Coefficients = read_coefficients(unit(photograph(1, grey=True)), colour.history)
    assert only.history.sampling == (1, 1) and only.history.chroma is None


@pytest.mark.parametrize(("length", "before", "ends"), [(16, 0, True), (15, 0, True), (13, 3, False), (9, 5, True)])
def test_enlargement_is_undone_by_least_squares(length: int, before: int, ends: bool) -> None:
    """Against the dense system: the decoder's weights for every pixel of the picture, and weak springs."""
    samples = 8
    weights, springs = np.zeros((length, samples)), np.zeros((samples, samples))
    lowest, highest = (before // 2, (before + length - 1) // 2) if ends else (0, samples - 1)
    for pixel in range(length):
        near = (before + pixel) // 2
        beside = min(max(near + (1 if (before + pixel) % 2 else -1), lowest), highest)
        weights[pixel, near] += 0.75
        weights[pixel, beside] += 0.25
    for first in range(samples - 1):
        springs[first : first + 2, first : first + 2] += [[1, -1], [-1, 1]]
    pixels = np.random.default_rng(0).normal(size=(length, 5))
    expected = np.linalg.solve(weights.T @ weights + SPRING * springs, weights.T @ pixels)
    found = reduce_chroma(pixels, Reach(length, before, samples, 2, ends), Reach(5, 0, 5, 1, True))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    turned = reduce_chroma(pixels.T, Reach(5, 0, 5, 1, True), Reach(length, before, samples, 2, ends))
    np.testing.assert_allclose(turned, expected.T, atol=1e-12)


def test_samples_beyond_a_border_continue_it() -> None:
    pixels = np.random.default_rng(0).normal(size=(9, 3))
    found = reduce_chroma(pixels, Reach(9, 0, 8, 2, True), Reach(3, 0, 3, 1, True))
    np.testing.assert_allclose(found[5:], np.repeat(found[4:5], 3, 0), atol=1e-9)
    wide = reduce_chroma(pixels, Reach(9, 0, 9, 1, True), Reach(3, 2, 8, 1, True))
    np.testing.assert_array_equal(wide, pixels[:, [0, 0, 0, 1, 2, 2, 2, 2]])


def test_what_was_rounded_to_zero_has_no_error_of_rounding() -> None:
    """Steps of 12: an error of 12 where a coefficient is not zero, or a mean; two of 64 here, and the rounding of pixels."""
    values = np.zeros((1, 1, 8, 8), np.float32)
    values[0, 0, 2, 3] = 24
    plane = Plane(values, np.ones((1, 1, 8, 8), bool), np.full((1, 1), 0.35, np.float32))
    found = Coefficients(JpegHistory((12,) * 64), 0, 0, 8, 8, (8, 8), (plane,))
    assert found.rounding_error() == pytest.approx(math.sqrt(2 * 12 / 64 + 1 / 12) / 255)
