"""is_drawing: the share of pixels with exactly the colour of their neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leader.forensics.defects.drawing import ONE_COLOUR, is_drawing


def half_flat(share: float) -> NDArray[np.float64]:
    """[101, 101, 3]: noise, but for a flat part so large that this share of the 100 x 100 pairs is alike."""
    pixels = np.random.default_rng(0).random((101, 101, 3))
    pixels[: 1 + round(100 * share)] = 0.5
    return pixels


def test_the_limit_is_a_share_of_the_pixels() -> None:
    assert is_drawing(half_flat(ONE_COLOUR + 0.01)) and not is_drawing(half_flat(ONE_COLOUR - 0.01))


def test_both_neighbours_and_all_channels_count() -> None:
    rows = np.repeat(np.random.default_rng(1).random((64, 1, 3)), 64, axis=1)  # stripes: alike along rows alone
    assert not is_drawing(rows) and not is_drawing(rows.transpose(1, 0, 2))
    tinted = np.full((64, 64, 3), 0.5)
    tinted[..., 2] = np.random.default_rng(2).random((64, 64))
    assert not is_drawing(tinted) and is_drawing(tinted[..., :2])


def test_a_single_row_tells_nothing() -> None:
    assert not is_drawing(np.zeros((1, 50, 3)))
