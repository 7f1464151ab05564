"""What a file says of its compression, and that it follows the pixels when they are turned."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin

from leader.forensics.jpeg.block_grid import matches_history
from leader.pictures import Picture, from_pil, read_picture, write_picture
from leader.pictures.jpeg_history import JpegHistory, read_history, standard_chroma, standard_luma
from tests.forensics.jpegs import jpeg, photograph

SLANTED = [3 + row + 4 * column for row in range(8) for column in range(8)]
"""A table that differs from its transpose."""


@pytest.mark.parametrize("quality", [10, 50, 75, 95])
@pytest.mark.parametrize(("subsampling", "sampling"), [(0, (1, 1)), (1, (1, 2)), (2, (2, 2))])
def test_tables_and_sampling_of_a_file(quality: int, subsampling: int, sampling: tuple[int, int]) -> None:
    history = read_history(jpeg(photograph(0, side=32), quality, subsampling, progressive=quality == 50))
    assert history is not None
    assert history.luma == tuple(standard_luma(quality)) and history.chroma == tuple(standard_chroma(quality))
    assert history.sampling == sampling and history.quality == quality and not history.found


def test_grey_files_have_one_table_and_others_none(tmp_path: Path) -> None:
    grey = read_history(jpeg(photograph(0, side=32, grey=True), 60))
    assert grey is not None and grey.chroma is None and grey.sampling == (1, 1) and grey.quality == 60
    assert read_history(photograph(0, side=32)) is None
    photograph(0, side=32).save(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png").history is None
    assert read_history(jpeg(photograph(0, side=32).convert("CMYK"))) is None


@pytest.mark.parametrize("orientation", range(1, 9))
def test_history_turns_with_the_picture(orientation: int, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    image = photograph(1).crop((0, 0, 107, 92))
    image.save(tmp_path / "turned.jpg", qtables=[SLANTED, [2 + step for step in SLANTED]], subsampling=1, exif=exif)
    picture = read_picture(tmp_path / "turned.jpg")
    history, pixels = picture.history, picture.pixels.astype(np.float64)
    assert history is not None and matches_history(pixels, history)
    across = orientation >= 5
    assert history.sampling == ((2, 1) if across else (1, 2)) and (history.luma[1] > history.luma[8]) != across
    assert history.chroma == tuple(2 + step for step in history.luma)
    assert replace(history, found=True).turned(orientation, 92, 107).found and not history.found
    shifted = JpegHistory(history.luma, history.chroma, history.sampling, (history.offset[0] + 1, history.offset[1]))
    assert not matches_history(pixels, shifted)


def test_a_file_that_was_resized_in_place_does_not_keep_its_history() -> None:
    """Pillow's thumbnail leaves the tables of the file on an image that they no longer describe."""
    image = jpeg(photograph(1), 60)
    image.thumbnail((120, 120))
    picture = from_pil(image)
    assert picture.history is not None
    assert not matches_history(picture.pixels.astype(np.float64), picture.history)


def test_the_standard_tables_are_those_of_every_quality() -> None:
    for quality in range(1, 101):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8)).save(buffer, "JPEG", quality=quality)
        with Image.open(buffer) as file:
            found = read_history(file)
        assert found is not None and found.chroma is not None
        assert found.luma == tuple(standard_luma(quality)) and found.chroma == tuple(standard_chroma(quality)), quality


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_a_restored_jpeg_gets_our_tables_and_not_the_coarse_ones_it_came_with(tmp_path: Path, subsampling: int) -> None:
    """Unless its pixels are unchanged; and a quality that is asked for wins."""
    pixels = np.random.default_rng(3).integers(60, 200, (24, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "coarse.jpg", quality=12, subsampling=subsampling)
    given = read_picture(tmp_path / "coarse.jpg")
    assert given.history is not None
    restored, seen = given.with_pixels(given.pixels * 0.9), replace(given, history=replace(given.history, found=True))

    def write(picture: Picture, quality: int | None = None) -> tuple[list[int], int]:
        write_picture(tmp_path / "out.jpg", picture, quality=quality)
        with Image.open(tmp_path / "out.jpg") as written:
            tables = written.quantization  # type: ignore[attr-defined]
            return [max(table) for table in tables.values()], JpegImagePlugin.get_sampling(written)

    assert write(given) == ([max(standard_luma(12)), max(standard_chroma(12))], subsampling)
    for picture in (restored, seen):
        steps, sampling = write(picture)
        assert max(steps) <= 12 and sampling == 0
    assert write(given, 50)[0] == [max(standard_luma(50)), max(standard_chroma(50))]
