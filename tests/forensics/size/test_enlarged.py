"""Pictures that were only enlarged, by Pillow; and those that were not."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageFilter

from leader.forensics.size.enlarged import enlarged_by
from leader.pictures import Picture, from_pil
from tests.forensics.noise.fields import colour


def enlarged(factor: float, kernel: str, seed: int = 0) -> Image.Image:
    side = round(240 / factor)
    return Image.fromarray(colour(side, seed)).resize((round(side * factor),) * 2, Image.Resampling[kernel.upper()])


@pytest.mark.parametrize("kernel", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_whole_factors(factor: int, kernel: str) -> None:
    assert enlarged_by(from_pil(enlarged(factor, kernel))) == pytest.approx(factor, rel=0.02)


@pytest.mark.parametrize("kernel", ["bilinear", "bicubic"])
def test_a_factor_below_two_is_not_taken_for_its_twin(kernel: str) -> None:
    """1.5 and 3 beat alike; three times enlarged, a picture has nothing where its mean would be repeated."""
    assert enlarged_by(from_pil(enlarged(1.5, kernel))) == pytest.approx(1.5, rel=0.02)


def test_pictures_that_were_not() -> None:
    for seed in range(4):
        image = Image.fromarray(colour(240, seed))
        assert enlarged_by(from_pil(image)) is None
        assert enlarged_by(from_pil(image.filter(ImageFilter.GaussianBlur(1.5)))) is None  # blur has no grid
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=60)
        assert enlarged_by(from_pil(Image.open(buffer))) is None  # blocks are no grid of that kind
        assert enlarged_by(from_pil(image.resize((60, 60)))) is None  # too small to tell


def test_behind_jpeg() -> None:
    buffer = io.BytesIO()
    enlarged(3, "bicubic").save(buffer, "JPEG", quality=75)
    assert enlarged_by(from_pil(Image.open(buffer))) == pytest.approx(3, rel=0.02)


def test_nothing_to_see() -> None:
    assert enlarged_by(Picture(np.full((80, 90, 1), 0.4, np.float32))) is None
