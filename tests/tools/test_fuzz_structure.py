"""Damage that knows a format: the same seed gives the same bytes, and every format is changed and keeps its beginning."""

from __future__ import annotations

import io
from random import Random

import numpy as np
import pytest
from PIL import Image
from tools.fuzz.structure import spoiled_structure

FORMATS = ["PNG", "JPEG", "TIFF", "WEBP", "AVIF", "JPEG2000"]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_changed_and_keeps_its_beginning(name: str) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.arange(12 * 20 * 3, dtype=np.uint8).reshape(12, 20, 3)).save(buffer, name)
    data = buffer.getvalue()
    made = [spoiled_structure(data, Random(number)) for number in range(60)]
    assert made == [spoiled_structure(data, Random(number)) for number in range(60)]
    assert len(set(made)) > 30 and sum(one != data for one in made) > 50
    assert sum(one[:2] == data[:2] for one in made) > 40
    assert spoiled_structure(b"BM, of no format known here", Random(0)) == b"BM, of no format known here"
