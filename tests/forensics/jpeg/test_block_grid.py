"""JPEG's blocks and steps found again in pixels."""

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from leader.forensics.jpeg.block_grid import find_history
from leader.forensics.jpeg.blocks import DCT
from leader.forensics.jpeg.standard_grid import _best, find_standard, take_blocks
from leader.pictures.jpeg_history import read_history, standard_luma
from tests.forensics.jpegs import jpeg, photograph, unit


@pytest.mark.parametrize(
    ("quality", "noise", "subsampling", "grey"), [(40, 0, 2, False), (75, 0, 2, True), (85, 10, 0, False), (95, 10, 2, False)]
)
def test_the_grid_of_a_cropped_copy(quality: int, noise: float, subsampling: int, grey: bool) -> None:
    pixels = unit(jpeg(photograph(6, noise, grey=grey), quality, subsampling))[3:, 2:]
    history = find_history(pixels)
    assert history is not None and history.found and history.offset == (5, 6)
    assert abs(history.quality - quality) <= 4
    assert (history.chroma is None) == grey
    if not grey:
        assert history.sampling == ((1, 1) if subsampling == 0 else (2, 2))


@pytest.mark.parametrize("index", [0, 5, 10])
def test_no_grid_where_there_was_no_jpeg(index: int) -> None:
    assert find_history(unit(photograph(index))) is None
    assert find_history(unit(photograph(index, 10))) is None


def test_no_grid_in_a_screenshot_unless_it_was_a_jpeg() -> None:
    """Rows that repeat themselves have few coefficients, which are multiples of anything; JPEG leaves ripples between them."""
    screen = Image.new("RGB", (400, 264), (245, 246, 248))
    pen = ImageDraw.Draw(screen)
    for top in range(16, 250, 44):
        pen.rectangle((20, top, 380, top + 36), fill=(252, 252, 252), outline=(210, 210, 215))
        pen.text((34, top + 10), "status", fill=(60, 60, 60))
    assert find_history(unit(screen)) is None
    assert find_history(unit(jpeg(screen, 60))) is not None


def test_no_grid_in_flat_tiny_or_resized_pictures() -> None:
    assert find_history(np.full((64, 64, 3), 0.5)) is None
    assert find_history(np.zeros((20, 90, 1))) is None
    halved = jpeg(photograph(1), 75).resize((120, 120), Image.Resampling.BICUBIC)
    assert find_history(unit(halved)) is None


@pytest.mark.parametrize(("quality", "subsampling"), [(75, 2), (92, 0), (50, 1)])
def test_the_grid_of_a_small_copy_and_of_one_without_red(quality: int, subsampling: int) -> None:
    small = photograph(2).resize((48, 48), Image.Resampling.BOX)
    dark = np.asarray(photograph(6, 25)).astype(int) - (180, 0, 0)  # nearly every block touches black in red, and is weaker
    for image, error in ((small, 1), (Image.fromarray(dark.clip(0, 255).astype(np.uint8)), 10)):
        history = find_history(unit(jpeg(image, quality, subsampling)))
        assert history is not None and history.offset == (0, 0)
        assert abs(history.quality - quality) <= error


def test_standard_tables_are_found_to_the_step() -> None:
    copy = jpeg(photograph(6, 10), 75)
    history = find_history(unit(copy))
    assert history is not None and (true := read_history(copy)) is not None and history.luma == true.luma


def test_tables_that_are_not_standard() -> None:
    table = [4 + 3 * (n % 8) + 2 * (n // 8) for n in range(64)]
    copy = jpeg(photograph(6, 25), qtables=[table, table])
    true = read_history(copy)
    history = find_history(unit(copy))
    assert true is not None and history is not None and history.offset == (0, 0)
    near = [abs(one / other - 1) < 0.1 for one, other in zip(history.luma[1:], true.luma[1:], strict=True)]
    assert np.mean(near) > 0.8


def test_no_standard_table_fits_what_repeats_itself() -> None:
    tile = np.random.default_rng(0).integers(1, 255, (16, 16)).astype(float)
    checks = 60.0 + 100 * (np.indices((96, 96)).sum(0) // 8 % 2)
    even = np.zeros((8, 8))  # frequencies that look the same half a block further on
    even[::2, ::2] = standard_luma(50).reshape(8, 8)[::2, ::2]
    for plane in (np.tile(tile, (12, 12)), checks, np.tile(128 + DCT.T @ even @ DCT, (12, 12))):
        assert find_standard(take_blocks(plane, np.ones(plane.shape, bool))) is None


def test_a_table_is_compared_where_it_can_tell() -> None:
    """Values at one of its steps, 6 a band: in enough bands; beside cut ones, of which only larger steps and values count."""
    steps = standard_luma(80).reshape(64).astype(np.float32)
    small, large = np.flatnonzero((steps >= 3) & (steps < 12))[:8], np.flatnonzero(steps >= 12)

    def look(bands: NDArray[np.intp], cut: NDArray[np.intp], share: float) -> tuple[int, float]:
        every = np.repeat(np.concatenate([bands, cut]), 6)
        sizes = np.where(np.arange(len(every)) < 6 * len(bands), 1, np.float32(share))
        return _best(((steps[every] * sizes).astype(np.float32), every, np.arange(len(every)) >= 6 * len(bands)), -2.0)

    none = large[:0]
    assert look(large[:9], none, 1) == (80, 1.0) and look(large[:9], large[9:30], 0.3) == (80, 1.0)
    assert look(np.repeat(large[:3], 3), none, 1)[1] == look(none, np.concatenate([np.repeat(large[:3], 4), small]), 1)[1] == -1
