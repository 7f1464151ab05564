"""JPEG's blocks and steps found again in pixels."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from leader.pictures.block_grid import find_history
from tests.pictures.jpegs import jpeg, photograph, unit


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


def test_no_grid_in_flat_tiny_or_resized_pictures() -> None:
    assert find_history(np.full((64, 64, 3), 0.5)) is None
    assert find_history(np.zeros((20, 90, 1))) is None
    halved = jpeg(photograph(1), 75).resize((120, 120), Image.Resampling.BICUBIC)
    assert find_history(unit(halved)) is None
