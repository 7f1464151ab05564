"""Disks and straight motions: areas and lengths computed otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from leader.errors import LeaderError
from leader.operators import disk_kernel, line_kernel


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
