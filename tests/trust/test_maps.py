"""The trust map as people see it: one scale for all pictures, shares that are counts, a legend that says what colours mean."""

import re

import numpy as np
import pytest

from leader.errors import LeaderError
from leader.trust import maps

ONE_LEVEL = 1 / (1.6449 * 255)
"""The standard deviation of what is known to within one level with 90 % confidence."""


def test_shares_count_the_pixels_known_to_within_so_many_levels() -> None:
    std = np.array([[4.9, 5.1, 9.9, 10.1], [19.9, 20.1, 0.0, 50.0]], np.float32) * ONE_LEVEL
    assert maps.shares(std) == {"5": 2 / 8, "10": 4 / 8, "20": 6 / 8} and maps.find_unsure_share(std) == 2 / 8
    assert [int(number) for number in re.findall(r"\d+", maps.in_words(std))] == [25, 5, 50, 10, 75, 20, 90]


def test_nine_of_ten_gaussian_errors_lie_within_the_reach() -> None:
    error = 0.03 * np.random.default_rng(0).standard_normal(200_000)
    (reach,) = maps.reach(np.full((1, 1), 0.03, np.float32)).ravel()
    assert np.mean(np.abs(error) * 255 <= reach) == pytest.approx(0.9, abs=0.003)


def test_a_colour_means_the_same_in_every_picture() -> None:
    rng = np.random.default_rng(1)
    one, other = (rng.uniform(0, scale, (9, 7)).astype(np.float32) for scale in (0.01, 0.3))
    one[4, 4] = other[2, 3] = 7 * ONE_LEVEL
    assert np.array_equal(maps.colours(one)[4, 4], maps.colours(other)[2, 3])
    for colour, level in zip(maps.COLOURS, (1, 2, 5, 10, 20, 40)):
        drawn = maps.colours(np.full((1, 1), level * ONE_LEVEL, np.float32))
        np.testing.assert_allclose(drawn[0, 0], colour, atol=1)
    between = maps.colours(np.full((1, 1), 20 * 2**0.5 * ONE_LEVEL, np.float32))[0, 0]
    np.testing.assert_allclose(between, np.mean(maps.COLOURS[4:], 0), atol=1, err_msg="halfway on a logarithmic scale")
    entries = maps.legend_entries()
    assert [words for _, words in entries] == [*(f"within {n} levels" for n in (2, 5, 10, 20)), "further off"]
    assert [colour for colour, _ in entries] == list(maps.COLOURS[1:])


@pytest.mark.parametrize("width", [16, 200, 1200])
def test_the_legend_lies_below_the_map_and_holds_its_colours(width: int) -> None:
    std = np.full((30, width), 0.5 * ONE_LEVEL, np.float32)
    sheet = np.asarray(maps.heat(std))
    np.testing.assert_array_equal(sheet[:30, :width], np.broadcast_to(maps.COLOURS[0], (30, width, 3)))
    below = sheet[30:].reshape(-1, 3)
    for colour, _ in maps.legend_entries():
        assert (below == colour).all(1).sum() >= 100, "a square of every colour"
    assert not (below == maps.COLOURS[0]).all(1).any()


def test_what_is_known_stays_and_what_is_invented_fades() -> None:
    pixels = np.full((1, 4, 3), 0.2, np.float32)
    std = np.array([[0, 5, 14.142, 60]], np.float32) * ONE_LEVEL
    faded = np.asarray(maps.fade(pixels, std), dtype=np.float64)[0, :, 0] / 255
    expected = [0.2, 0.2, 0.2 + 0.5 * 0.88 * 0.6, 0.2 + 0.88 * 0.6]
    np.testing.assert_allclose(faded, expected, atol=0.004)
    grey = maps.fade(pixels[..., :1], std)
    assert grey.mode == "RGB" and np.array_equal(np.asarray(grey), np.asarray(maps.fade(pixels, std)))


@pytest.mark.parametrize("wrong", [np.zeros((2, 2, 3)), np.zeros((0, 4)), np.array([[np.nan]]), np.array([[-1.0]])])
def test_what_is_no_map_is_refused_in_a_sentence(wrong: np.ndarray) -> None:
    with pytest.raises(LeaderError, match="trust map"):
        maps.heat(wrong.astype(np.float32))
    with pytest.raises(LeaderError, match="the shape"):
        maps.fade(np.zeros((3, 4, 3), np.float32), np.zeros((4, 3), np.float32))


def test_sixteen_bits_have_the_same_scale_in_every_picture() -> None:
    std = np.array([[0.0, 0.25], [0.1, 0.5]], dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(maps.numbers(std)), np.round(65535 * std))
