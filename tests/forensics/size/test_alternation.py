"""Lines that alternate at factors such as 1.5: on smooth fields, and with moments computed by hand."""

import numpy as np
import pytest
from numpy.typing import NDArray

from leader.forensics.size.alternation import compare_alternations, find_moments
from leader.forensics.size.kernel_features import find_plane
from leader.forensics.size.thumbnails import KERNELS, OTHER_FACTOR, kernel_chances, weigh_alternation
from leader.operators.pillow_resize import pillow_matrix
from tests.forensics.fields import field

NAMES = tuple(KERNELS)


def reduced(kernel: str, large: int, small: int, seed: int = 4) -> NDArray[np.float64]:
    matrix = pillow_matrix(large, small, kernel).numpy()
    return np.asarray(matrix @ field(large, seed, slope=4, edges=0).astype(np.float64) @ matrix.T)


@pytest.mark.parametrize("factor", [1.5, 1.37, 2.5])
@pytest.mark.parametrize("kernel", ["nearest", "box", "bilinear"])
def test_every_kernel_explains_its_own_thumbnail_best(factor: float, kernel: str) -> None:
    """Whole, in a part of it by the place of its lines, and where rounding hides how large the picture was."""
    for large in (round(96 * factor), round(96 * factor) + (kernel != "box")):
        plane = reduced(kernel, large, 96)
        for lines, starts in ((plane, (0, 0)), (plane[13:90, 21:], (13, 21))):
            found = compare_alternations(lines, factor, (96, 96), starts, NAMES)
            ranked = np.sort(found)
            assert found.argmax() == NAMES.index(kernel) and 0 < ranked[-1] > ranked[-2] + 5e-5, (large, starts)


def test_moments_by_hand() -> None:
    """By 1.5 nearest neighbour lies a quarter of a pixel before and behind; box averages two pixels and takes one."""
    found = find_moments(48, 32, 5, 20, ("nearest", "box"))[..., 0]
    assert np.allclose(found[0], [[1 / 6, -1 / 6] * 10, [0.0] * 20])
    assert np.allclose(found[1], [[0.0] * 20, [-1 / 18, 1 / 18] * 10])


def test_it_counts_where_lines_alternate_and_never_excludes_a_kernel() -> None:
    """A thumbnail may have been made by another factor; compression takes the alternation away, whole factors have none."""
    pixels = np.round(255 * reduced("nearest", 108, 72)[..., None]) / 255
    even = dict.fromkeys(NAMES, 1 / len(NAMES))
    weighed = weigh_alternation(even, pixels, 1.5)
    assert weighed["nearest"] > 0.99 and sum(weighed.values()) == pytest.approx(1)
    told = compare_alternations(find_plane(pixels)[0], 1.5, (72, 72), (0, 0), NAMES)
    few = weigh_alternation(even, pixels, 1.5, 40)
    expected = OTHER_FACTOR + (1 - OTHER_FACTOR) * np.exp(40 * told)
    assert np.allclose(list(few.values()), expected / expected.sum())
    other = weigh_alternation(even, np.round(255 * reduced("nearest", 216, 72)[..., None]) / 255, 1.5)
    assert min(other.values()) > 0.9 * OTHER_FACTOR / len(NAMES)
    plain = {compressed: kernel_chances(pixels, 1.5, compressed)["nearest"] for compressed in (False, True)}
    assert plain[False] > 0.99 and plain[False] != plain[True]


def test_a_thumbnail_was_never_smaller_than_it_is() -> None:
    """A factor of hardly more than 1 adds no row."""
    assert np.isfinite(compare_alternations(reduced("box", 90, 80)[:60], 1.001, (60, 80), (0, 0), NAMES)).all()
