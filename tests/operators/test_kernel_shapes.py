"""Disks and straight motions: areas and lengths computed otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from leader.errors import LeaderError
from leader.operators import disk_kernel, line_kernel


def moments(kernel: torch.Tensor) -> tuple[float, float, float]:
    """Variance across, variance down, covariance (down is positive)."""
    rows = torch.arange(kernel.shape[0]) - (kernel.shape[0] - 1) / 2
    columns = torch.arange(kernel.shape[1]) - (kernel.shape[1] - 1) / 2
    return (
        float((kernel * columns**2).sum()),
        float((kernel * rows[:, None] ** 2).sum()),
        float((kernel * rows[:, None] * columns).sum()),
    )


@pytest.mark.parametrize("radius", [0.3, 1.0, 2.5, 3.7])
def test_a_disk_covers_its_pixels(radius: float) -> None:
    kernel = disk_kernel(radius)
    reach = (kernel.shape[0] - 1) // 2
    assert reach - 0.5 < radius <= reach + 0.5 or (reach == 0 and radius <= 0.5), "all that it touches, and no more"
    fine = (np.arange(200 * (2 * reach + 1)) + 0.5) / 200 - reach - 0.5
    inside = (fine[:, None] ** 2 + fine**2 <= radius**2).reshape(2 * reach + 1, 200, 2 * reach + 1, 200).mean((1, 3))
    assert np.abs(kernel.numpy() - inside / inside.sum()).max() < 5e-3 / (math.pi * radius**2)
    assert float(kernel.sum()) == pytest.approx(1) and torch.equal(kernel, kernel.T)
    assert torch.allclose(kernel, kernel.flip((0, 1)))


def test_a_line_along_a_row_is_a_box() -> None:
    assert line_kernel(9.0).tolist() == [pytest.approx([1 / 9] * 9)]
    assert line_kernel(4.0).tolist() == [pytest.approx([0.125, 0.25, 0.25, 0.25, 0.125])]
    assert torch.allclose(line_kernel(5.0, 90.0), line_kernel(5.0).T)
    assert torch.allclose(line_kernel(5.0, 180.0), line_kernel(5.0))
    assert line_kernel(0.5).tolist() == [[1.0]]


@pytest.mark.parametrize(("length", "angle"), [(15.0, 30.0), (9.3, 75.0), (20.0, 135.0), (7.0, 45.0)])
def test_a_line_has_its_length_and_angle(length: float, angle: float) -> None:
    """Its way has the variance L^2 / 12 along the angle; pixels move it by at most their own deviation, sqrt(2 / 12)."""
    across, down, both = moments(line_kernel(length, angle))
    assert math.sqrt(across + down) == pytest.approx(length / math.sqrt(12), abs=math.sqrt(2 / 12))
    assert 0.5 * math.degrees(math.atan2(-2 * both, across - down)) % 180 == pytest.approx(angle, abs=2)


def test_a_line_equals_many_points_on_it() -> None:
    length, angle = 11.3, 27.0
    way = (np.arange(200_000) + 0.5) / 200_000 * length - length / 2
    columns = np.rint(way * math.cos(math.radians(angle))).astype(int)
    rows = np.rint(-way * math.sin(math.radians(angle))).astype(int)
    kernel = line_kernel(length, angle)
    counted = np.zeros(tuple(kernel.shape))
    np.add.at(counted, (rows + kernel.shape[0] // 2, columns + kernel.shape[1] // 2), 1 / len(way))
    assert np.abs(kernel.numpy() - counted).max() < 1e-5


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf])
def test_wrong_widths_are_refused(width: float) -> None:
    with pytest.raises(LeaderError, match="positive"):
        disk_kernel(width)
    with pytest.raises(LeaderError, match="positive"):
        line_kernel(width)
