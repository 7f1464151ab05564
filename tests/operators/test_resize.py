"""Super-resolution against a construction written pixel by pixel, and against published numbers."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from leader.errors import LeaderError
from leader.operators import AveragePoolSR, BicubicSR
from leader.operators.resize import average_matrix, bicubic_matrix


def resizing_weights(size: int, factor: int) -> NDArray[np.float64]:
    """The antialiased cubic of image programs, output pixel by output pixel in one-based coordinates."""
    scale = 1 / factor
    table = np.zeros((int(np.ceil(size * scale)), size))
    mirror = [*range(size), *range(size - 1, -1, -1)]
    for pixel in range(1, table.shape[0] + 1):
        centre = pixel / scale + 0.5 * (1 - 1 / scale)
        taps = range(int(np.floor(centre - 2 * factor)), int(np.ceil(centre + 2 * factor)) + 1)
        heights = []
        for tap in taps:
            d = abs(centre - tap) * scale
            if d <= 1:
                heights.append(scale * (1.5 * d**3 - 2.5 * d**2 + 1))
            elif d <= 2:
                heights.append(scale * (-0.5 * d**3 + 2.5 * d**2 - 4 * d + 2))
            else:
                heights.append(0.0)
        for tap, height in zip(taps, heights):
            table[pixel - 1, mirror[(tap - 1) % (2 * size)]] += height / sum(heights)
    return table


@pytest.mark.parametrize(("size", "factor"), [(16, 2), (21, 3), (32, 4), (33, 4), (30, 5), (7, 6), (5, 4), (9, 1), (64, 8)])
def test_bicubic_equals_an_independent_construction(size: int, factor: int) -> None:
    matrix = bicubic_matrix(size, factor)
    assert matrix.shape == (-(-size // factor), size)
    assert np.abs(matrix.numpy() - resizing_weights(size, factor)).max() <= 1e-14
    assert torch.allclose(matrix.sum(1), torch.ones(len(matrix), dtype=torch.float64))


@pytest.mark.parametrize(("factor", "low"), [(2, 0.4862), (4, 0.3485), (8, 0.2471), (16, 0.1762)])
def test_published_singular_values(factor: int, low: float) -> None:
    values = BicubicSR((1, 256, 256), factor).vertical.singular[: 256 // factor]
    assert float(values[0]) == pytest.approx(factor**-0.5, abs=1e-4)
    assert float(values[-1]) == pytest.approx(low, abs=5e-5)


def test_average_pooling() -> None:
    operator = AveragePoolSR((1, 8, 12), 4)
    x = torch.randn(2, 1, 8, 12, dtype=torch.float64)
    assert torch.allclose(operator.A(x), torch.nn.functional.avg_pool2d(x, 4))
    y = torch.randn(2, 1, 2, 3, dtype=torch.float64)
    assert torch.allclose(operator.pinv(y), y.repeat_interleave(4, 2).repeat_interleave(4, 3))
    assert torch.allclose(operator.s[operator.s > 0], torch.tensor(0.25).double())


def test_partial_cells_average_what_is_there() -> None:
    matrix = average_matrix(7, 3)
    assert matrix.shape == (3, 7)
    assert matrix[2].tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert torch.allclose(AveragePoolSR((1, 7, 5), 3).A(torch.ones(1, 1, 7, 5)), torch.ones(1, 1, 3, 2))


def test_cells_of_fractional_factors_share_their_pixels() -> None:
    matrix = average_matrix(3, 1.5)
    assert torch.allclose(matrix, torch.tensor([[2, 1, 0], [0, 1, 2]], dtype=torch.float64) / 3, rtol=1e-14)
    ramp = torch.arange(50, dtype=torch.float64)
    for rows in (20, 33, 49):  # a straight line stays one, sampled in the middle of its cells
        found = bicubic_matrix(50, 50 / rows, rows) @ ramp
        expected = (torch.arange(rows, dtype=torch.float64) + 0.5) * 50 / rows - 0.5
        assert (found - expected)[6:-6].abs().max() < 0.05


@pytest.mark.parametrize("factor", [0, -2, 9, "4", True])
def test_wrong_factor_is_refused(factor: int) -> None:
    with pytest.raises(LeaderError, match="factor must be a number from 1"):
        BicubicSR((3, 8, 16), factor)
