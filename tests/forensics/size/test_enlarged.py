"""Pictures that were only enlarged, by Pillow; and those that were not."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageFilter

from leader.forensics import examine
from leader.pictures import Picture, from_pil
from tests.forensics.fields import colour


def enlarged(factor: float, kernel: str, seed: int = 0) -> Image.Image:
    side = round(240 / factor)
    return Image.fromarray(colour(side, seed)).resize((round(side * factor),) * 2, Image.Resampling[kernel.upper()])


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
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=60)
        assert examine(from_pil(Image.open(buffer))).enlargement is None  # blocks are no grid of that kind
        assert examine(from_pil(image.resize((60, 60)))).enlargement is None  # too small to tell


def test_behind_jpeg() -> None:
    buffer = io.BytesIO()
    enlarged(3, "bicubic").save(buffer, "JPEG", quality=75)
    assert examine(from_pil(Image.open(buffer))).enlargement == pytest.approx(3, rel=0.02)


def test_nothing_to_see() -> None:
    assert examine(Picture(np.full((80, 90, 1), 0.4, np.float32))).enlargement is None
