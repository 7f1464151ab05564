"""Defects planted where it is known, in fields with the spectrum of photographs; and none in clean ones."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from leader.forensics import examine
from leader.forensics.defects import defects
from leader.forensics.defects.chains import find_chains
from leader.forensics.defects.defects import Defects
from leader.forensics.defects.neighbours import grow_mask
from leader.forensics.defects.scratches import find_drawn, on_segments, ridgeness
from leader.forensics.defects.specks import find_specks, speckness
from leader.pictures import Picture, from_pil
from leader.pictures.jpeg_history import JpegHistory, standard_luma
from tests.forensics.fields import Flags, colour, find_in, peppered, scratched
from tests.forensics.jpegs import jpeg, photograph

SIDE = 160


def behind_jpeg(pixels: np.ndarray, quality: int) -> Picture:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return from_pil(Image.open(buffer))


def recall_and_precision(found: Flags, truth: Flags, near: int = 0) -> tuple[float, float]:
    hits = found & grow_mask(truth, near)
    return float((found & truth).sum() / truth.sum()), float(hits.sum() / max(1, found.sum()))


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
def test_salt_and_pepper(share: float) -> None:
    """A speck with two equal ones beside it is no outlier: at 10 % some 5 % of them have that at first."""
    spoiled, truth = peppered(colour(SIDE, 1), share, 0)
    found = find_in(from_pil(Image.fromarray(spoiled)))
    recall, precision = recall_and_precision(~found.known, truth)
    assert recall >= 0.95 and precision >= 0.99 and found.kinds == ("salt and pepper",)
    assert found.share == pytest.approx(truth.mean(), rel=0.05)


@pytest.mark.parametrize("noise", [25, 40])
def test_strong_noise_that_was_clipped_is_no_salt_and_pepper(noise: int) -> None:
    """In grey, chance makes as many black and white pixels that stand out; real ones besides are more."""
    grey = colour(SIDE, 1)[..., 1] + np.random.default_rng(0).normal(0, noise, (SIDE, SIDE))
    noisy = grey.clip(0, 255).round().astype(np.uint8)
    assert find_in(from_pil(Image.fromarray(noisy))).kinds == ()
    spoiled, truth = peppered(noisy, 0.02, 0)
    assert recall_and_precision(~find_in(from_pil(Image.fromarray(spoiled))).known, truth)[0] >= 0.8


@pytest.mark.parametrize(("read", "gain"), [(0.06, 0.0), (0.01, 0.03)])
def test_noise_of_light_is_neither_specks_nor_scratches(read: float, gain: float) -> None:
    """Added before the camera's gamma, it is so strong in the shadows that it reaches black there, and nowhere else."""
    seen = np.concatenate([colour(SIDE, 1)[:90, :, 1], colour(SIDE, 4)[:50, :, 1] // 3])
    light = (seen / 255) ** 2.2
    light += np.sqrt(gain * light + read**2) * np.random.default_rng(0).standard_normal(light.shape)
    noisy = np.round(255 * light.clip(0, 1) ** (1 / 2.2)).astype(np.uint8)
    assert (noisy == 0).mean() > 0.02 and find_in(from_pil(Image.fromarray(noisy))).kinds == ()
    spoiled, truth = peppered(noisy, 0.05, 0)
    assert recall_and_precision(~find_in(from_pil(Image.fromarray(spoiled))).known, truth)[0] >= 0.8


def test_dead_pixels_of_both_signs_and_of_one_channel() -> None:
    spoiled, truth = peppered(colour(SIDE, 2), 0.001, 3)
    found = find_in(from_pil(Image.fromarray(spoiled)))
    recall, precision = recall_and_precision(~found.known, truth)
    assert recall >= 0.9 and precision == 1 and found.kinds == ("dead pixels",)
    stuck = colour(SIDE, 3)
    stuck[10:150:20, 15:150:20, 0] = 250  # red alone, so no pure white
    assert find_in(from_pil(Image.fromarray(stuck))).known[10:150:20, 15:150:20].mean() < 0.2


def test_lines_that_run_out_of_the_picture_end_in_no_specks() -> None:
    lined = colour(SIDE, 2)
    lined[20:150:11, :25] = lined[20:150:11, -25:] = 250  # their last pixel has one neighbour like itself
    assert not find_specks(from_pil(Image.fromarray(lined)).pixels)[:, [0, -1]].any()
    speckled, _ = peppered(colour(SIDE, 2), 0.0, 0)
    speckled[20:150:11, 0] = 255
    assert find_specks(from_pil(Image.fromarray(speckled)).pixels)[20:150:11, 0].all()


def test_a_drawn_line_must_be_longer_in_grey_and_clearer_where_it_is_cut_off() -> None:
    plain = np.full((60, 90, 3), (0.5, 0.52, 0.5), np.float32)
    plain[..., 0] += np.random.default_rng(0).normal(0, 0.005, (60, 90)).astype(np.float32)
    for length, value, base, channels, found in (
        (24, 0.7, 0.5, 3, True),
        (24, 0.7, 0.5, 1, False),
        (40, 0.7, 0.5, 1, True),
        (40, 1.0, 0.92, 3, False),
        (40, 1.0, 0.7, 3, True),
    ):
        pixels = (plain + np.float32(base - 0.5))[..., :channels].copy()
        pixels[30, 20 : 20 + length] = value
        assert find_drawn(pixels).any() == found, (length, value, base, channels)
    pixels[30, 20:60] = np.linspace(0.6, 0.95, 40)[:, None]
    assert not find_drawn(pixels).any(), "of many colours"


@pytest.mark.parametrize(("shade", "width", "curved"), [(0, 1, False), (255, 3, True), (128, 2, True), (0, 2, True)])
def test_scratches(shade: int, width: int, curved: bool) -> None:
    clean = colour(SIDE, 4)
    spoiled, truth = scratched(clean, shade, width, curved)
    found = find_in(from_pil(Image.fromarray(spoiled)))
    visible = truth & (np.abs(spoiled.astype(int) - clean).max(2) > 25)  # grey is lost where the picture is grey
    recall, precision = recall_and_precision(~found.known, visible)[0], recall_and_precision(~found.known, truth, near=1)[1]
    assert recall >= (0.97 if shade != 128 else 0.7) and precision == 1 and found.kinds == ("scratches",)


@pytest.mark.parametrize("quality", [75, 92])
@pytest.mark.parametrize(("shade", "width", "curved"), [(0, 2, False), (255, 3, True)])
def test_scratches_behind_jpeg(quality: int, shade: int, width: int, curved: bool) -> None:
    spoiled, truth = scratched(colour(SIDE, 5), shade, width, curved)
    found = find_in(behind_jpeg(spoiled, quality))
    recall, precision = recall_and_precision(~found.known, truth, near=3)
    assert recall >= 0.8 and precision >= 0.9 and found.kinds == ("scratches",)


@pytest.mark.parametrize("quality", [40, 75, 92])
def test_many_scratches_of_one_shade_behind_jpeg(quality: int) -> None:
    image = Image.fromarray(colour(SIDE, 5))
    truth = Image.new("1", image.size)
    for ends in ((5, 10, 150, 40), (20, 150, 140, 60), (80, 5, 90, 155), (10, 60, 70, 140), (100, 20, 155, 120)):
        ImageDraw.Draw(image).line(ends, fill=(235, 235, 235), width=2)
        ImageDraw.Draw(truth).line(ends, fill=1, width=2)
    found = find_in(behind_jpeg(np.asarray(image), quality))
    recall, precision = recall_and_precision(~found.known, np.asarray(truth), 3)
    assert recall >= 0.95 and precision >= 0.95 and found.smeared


def test_specks_behind_jpeg_and_what_it_smeared_around_them() -> None:
    many, truth = peppered(colour(SIDE, 6), 0.05, 1)
    found = find_in(behind_jpeg(many, 90))
    assert recall_and_precision(~found.known, truth)[0] >= 0.7 and found.kinds == ("salt and pepper",)
    assert not found.drowned
    strong = find_in(behind_jpeg(many, 40))
    assert recall_and_precision(~strong.known, truth)[0] >= 0.6 and strong.kinds == found.kinds and strong.drowned
    few = colour(SIDE, 7)
    few[20:150:30, 20:150:30] = 255
    known = find_in(behind_jpeg(few, 90)).known
    marked = np.zeros_like(known)
    marked[20:150:30, 20:150:30] = True
    assert (~known[grow_mask(marked, 1)]).mean() > 0.7  # the neighbours too


@pytest.mark.parametrize("seed", range(6))
def test_clean_pictures_are_left_alone(seed: int) -> None:
    pixels = colour(SIDE, 20 + seed)
    for picture in (from_pil(Image.fromarray(pixels)), behind_jpeg(pixels, 75)):
        found = find_in(picture)
        assert found.known.all() and found.kinds == () and found.share == 0


def test_texture_stars_text_and_highlights_are_none() -> None:
    noisy = np.clip(colour(SIDE, 30) + np.random.default_rng(0).normal(0, 25, (SIDE, SIDE, 3)), 1, 254).astype(np.uint8)
    assert find_in(from_pil(Image.fromarray(noisy))).kinds == ()
    stars = np.full((SIDE, SIDE), 0.05)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    for row, column in np.random.default_rng(1).integers(5, SIDE - 5, (40, 2)):
        stars += 0.7 * np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / (2 * 0.9**2))  # as wide as optics make them
    assert find_in(Picture(stars.clip(0, 1)[..., None].astype(np.float32), bits=16)).kinds == ()
    bright = colour(SIDE, 31)
    bright[40:60, 50:90] = 255
    bright[100:104, 20:60] = 0  # a bar of text, four pixels thick and longer than most strokes
    assert find_in(from_pil(Image.fromarray(bright))).known[40:60, 50:90].all()


def test_speckness_is_the_second_smallest_distance_and_at_the_border_the_smallest() -> None:
    pixels = np.random.default_rng(2).random((6, 7, 3)).astype(np.float32)
    known = np.random.default_rng(3).random((6, 7)) < 0.8
    expected = np.zeros((6, 7))
    for row in range(6):
        for column in range(7):
            around = [
                np.abs(pixels[row, column] - pixels[r, c]).max()
                for r in range(max(0, row - 1), min(6, row + 2))
                for c in range(max(0, column - 1), min(7, column + 2))
                if (r, c) != (row, column) and known[r, c]
            ]
            last = 0 if row in (0, 5) or column in (0, 6) else 1  # at the border one neighbour is enough
            expected[row, column] = sorted(around)[last] if len(around) > last else 0
    assert np.allclose(speckness(pixels, known), expected)


def test_ridges_and_segments_of_a_line() -> None:
    luma = np.full((60, 60), 0.4, np.float32)
    luma[30, 10:50] = 0.9
    ridge = ridgeness(luma[..., None])
    assert np.allclose(ridge[30, 10:50], 0.5) and ridge[20].max() == 0
    found = on_segments(luma, np.full_like(luma, 0.1))
    assert found[30, 13:47].all() and found.sum() <= 40
    dotted = luma.copy()
    dotted[30, 10:50:2] = 0.4  # one in two: less than most of any segment
    assert not on_segments(dotted, np.full_like(luma, 0.1)).any()


def test_chains() -> None:
    """Two lines that cross in one colour are one chain; of two colours they are two."""
    marked = np.zeros((20, 30), dtype=bool)
    marked[5, 3:25] = marked[2:12, 10] = marked[15, 20] = True
    pixels = np.zeros((20, 30, 1), np.float32)
    chains = find_chains(marked, pixels, 0.1)
    assert sorted(chains.area) == [1, 31] and sorted(chains.length) == [1, 22] and chains.spread.max() == 0
    pixels[2:12, 10] = 0.5
    pixels[5, 10] = 0
    apart = find_chains(marked, pixels, 0.1)
    assert sorted(apart.area) == [1, 3, 6, 22]
    assert apart.mask(apart.length >= 22, marked.shape).sum() == 22
    flags = np.zeros_like(marked)
    flags[15, 20] = True
    assert apart.holds(flags).sum() == 1
    assert len(find_chains(np.zeros_like(marked), pixels, 0.1).area) == 0


def test_specks_need_company() -> None:
    """Three white pixels in a dark picture of 40,000 are highlights; with more they are defects."""
    plane = np.full((200, 200, 1), 0.3, np.float32)
    plane[20, 20] = plane[90, 40] = plane[150, 160] = 1.0
    assert not find_specks(plane).any()
    plane[60, 60] = plane[61, 100] = 0.0
    assert find_specks(plane).sum() == 5


@pytest.mark.parametrize("quality", [10, 20])
def test_blocks_whose_rows_have_one_colour_are_no_scratches(quality: int) -> None:
    """Compression that leaves one wave of a block makes rows of one colour, which the neighbouring block may continue."""
    for index in (2, 3, 5, 7):  # all four had some
        assert "scratches" not in find_in(from_pil(jpeg(photograph(index), quality))).kinds


@pytest.mark.parametrize("bits", [3, 4, 5])
def test_bands_are_no_defects_however_much_of_one_colour_they_are(bits: int) -> None:
    """Levels of few bits differ by as much as a scratch stands out, and whole areas have one colour."""
    for mode in ("RGB", "L"):
        levels = np.round(np.asarray(photograph(2).convert(mode)) / 255 * (2**bits - 1)) / (2**bits - 1)
        banded = from_pil(Image.fromarray(np.round(levels * 255).astype(np.uint8)))
        assert find_in(banded).kinds == () and not examine(banded).torn.any()


@pytest.fixture
def speck(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what is found in a picture of 40 x 40: so many specks from the corner on, and one pixel of a smeared scratch."""

    def found(specks: int, quality: int | None, scratch: bool) -> Defects:
        flags = np.zeros((40, 40), bool)
        flags.reshape(-1)[:specks] = True
        line = np.zeros((40, 40), bool)
        line[20, 30] = scratch
        history = None if quality is None else JpegHistory(tuple(int(step) for step in standard_luma(quality)))
        monkeypatch.setattr(defects, "find_specks", lambda _: flags)
        monkeypatch.setattr(defects, "find_smeared", lambda _: line)
        monkeypatch.setattr(defects, "find_drawn", lambda _: line)
        return defects.find_defects(np.full((40, 40, 1), 0.5, np.float32), history)

    return found


@pytest.mark.parametrize(("quality", "side"), [(None, 3), (90, 3), (85, 3), (84, 5), (30, 5)])
def test_coarse_compression_smears_a_line_by_two_pixels(speck: Any, quality: int | None, side: int) -> None:
    known = speck(0, quality, True).known
    reach = side // 2
    assert int((~known).sum()) == side**2 and not known[20 - reach : 21 + reach, 30 - reach : 31 + reach].any()


def test_a_few_specks_are_dead_pixels_and_many_are_salt_and_pepper(speck: Any) -> None:
    assert speck(7, None, False).kinds == ("dead pixels",) and speck(8, None, False).kinds == ("salt and pepper",)
    assert speck(0, None, False).kinds == () and speck(7, None, True).kinds == ("dead pixels", "scratches")
    assert speck(8, None, False).share == pytest.approx(8 / 1600)


def test_three_white_pixels_in_a_row_are_specks_all_of_them() -> None:
    """The middle one has two neighbours as white as itself, and stands out once these are known to be specks."""
    pixels = np.full((60, 60, 1), 0.5, np.float32) + 0.002 * np.random.default_rng(0).random((60, 60, 1), np.float32)
    white = np.zeros((60, 60), bool)
    for row in range(5, 60, 10):
        white[row, 10:13] = white[row, 40:43] = True
    pixels[white] = 1.0
    assert np.array_equal(find_specks(pixels), white)
