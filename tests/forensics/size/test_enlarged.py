"""Pictures that were only enlarged, by Pillow; and those that were not."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFilter

from leader.forensics import examine
from leader.pictures import Picture, from_pil
from leader.restoration.diagnose import diagnose
from tests.forensics.fields import colour


def enlarged(factor: float, kernel: str, seed: int = 0) -> Image.Image:
    side = round(240 / factor)
    return Image.fromarray(colour(side, seed)).resize((round(side * factor),) * 2, Image.Resampling[kernel.upper()])


def behind(image: Image.Image, quality: int) -> Picture:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return from_pil(Image.open(buffer))


@pytest.mark.parametrize("kernel", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_whole_factors(factor: int, kernel: str) -> None:
    assert examine(from_pil(enlarged(factor, kernel))).enlargement == pytest.approx(factor, rel=0.02)


@pytest.mark.parametrize("kernel", ["bilinear", "bicubic"])
def test_a_factor_below_two_is_not_taken_for_its_twin(kernel: str) -> None:
    """1.5 and 3 beat alike; three times enlarged, a picture has nothing where its mean would be repeated."""
    assert examine(from_pil(enlarged(1.5, kernel))).enlargement == pytest.approx(1.5, rel=0.02)


def test_pictures_that_were_not() -> None:
    for seed in range(4):
        image = Image.fromarray(colour(240, seed))
        assert examine(from_pil(image)).enlargement is None
        assert examine(from_pil(image.filter(ImageFilter.GaussianBlur(1.5)))).enlargement is None  # blur has no grid
        assert examine(behind(image, 60)).enlargement is None  # blocks are no grid of that kind
        assert examine(from_pil(image.resize((60, 60)))).enlargement is None  # too small to tell


@pytest.mark.parametrize(("factor", "kernel", "quality"), [(3, "bicubic", 85), (2, "bilinear", 85), (1.5, "bicubic", 95)])
def test_behind_jpeg(factor: float, kernel: str, quality: int) -> None:
    """Twice enlarged pictures beat where blocks do, and 1.5 beats like 3."""
    assert examine(behind(enlarged(factor, kernel, 0), quality)).enlargement == pytest.approx(factor, rel=0.02)


def test_blocks_of_a_blurred_picture_do_not_pass_for_twice() -> None:
    for seed in range(4):
        blurred = Image.fromarray(colour(240, seed)).filter(ImageFilter.GaussianBlur(1.2))
        assert examine(behind(blurred, 85)).enlargement is None


def test_a_picture_that_was_enlarged_and_compressed_is_called_so() -> None:
    both = diagnose(behind(enlarged(2, "bilinear", 1), 95)).findings
    assert both.blur.seen == "This picture was only enlarged, by about 2, and compressed afterwards." and both.blur.blur is None
    assert diagnose(from_pil(enlarged(2, "bilinear", 1))).findings.blur.seen == "This picture was only enlarged, by about 2."


@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_webp_are_no_grid_of_a_smaller_picture(seed: int) -> None:
    buffer = io.BytesIO()
    Image.fromarray(colour(240, seed)).save(buffer, "WEBP", quality=60)
    assert examine(from_pil(Image.open(buffer))).enlargement is None


def test_nothing_to_see() -> None:
    assert examine(Picture(np.full((80, 90, 1), 0.4, np.float32))).enlargement is None
