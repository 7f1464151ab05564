"""What surrounds a pixel, against NumPy's slow ways of saying the same, on planes and on channels."""

import numpy as np
import pytest
from numpy.typing import NDArray

from leader.forensics.defects.neighbours import find_largest, hold_all, median_around

FIELD: NDArray[np.float32] = np.random.default_rng(0).integers(0, 40, (13, 22, 3)).astype(np.float32)  # many are equal


@pytest.mark.parametrize(("step", "side"), [(1, 3), (1, 5), (4, 5)])
@pytest.mark.parametrize("field", [FIELD[..., 1], FIELD])
def test_the_median_around_a_pixel(field: NDArray[np.float32], step: int, side: int) -> None:
    by, frame = side // 2 * step, ((0, 0),) * (field.ndim - 2)
    padded = np.pad(field, ((by, by), (by, by), *frame), mode="edge")
    height, width = field.shape[:2]
    places = range(0, 2 * by + 1, step)
    around = [padded[down : down + height, right : right + width] for down in places for right in places]
    assert np.array_equal(median_around(field, step, side), np.median(around, axis=0))


def test_channels_plane_by_plane() -> None:
    assert np.array_equal(find_largest(FIELD), FIELD.max(2))
    flags = FIELD > 12
    assert np.array_equal(hold_all(flags), flags.all(2)) and not np.array_equal(hold_all(flags), flags.any(2))
