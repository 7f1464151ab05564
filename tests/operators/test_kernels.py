"""Kernels: published values, stored motion blurs, areas and lengths computed otherwise, and what a user may bring."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from leader.operators import disk_kernel, gaussian_kernel, line_kernel, load_kernel, motion_kernel
from leader.operators.kernels.motion import draw_motion


def test_gaussian_kernel_equals_a_filtered_delta() -> None:
    delta = np.zeros((61, 61))
    delta[30, 30] = 1
    expected = ndimage.gaussian_filter(delta, 3.0)
    kernel = gaussian_kernel(3.0)
    assert kernel.shape == (25, 25)
    assert np.abs(kernel.numpy() - expected[18:43, 18:43]).max() <= 1e-12
    assert float(kernel.sum()) == pytest.approx(1, abs=1e-14)


def test_motion_kernels() -> None:
    for seed in (0, 3, 15, 16, 40):
        kernel = motion_kernel(seed)
        assert kernel.shape == (61, 61) and kernel.dtype == torch.float64
        assert float(kernel.sum()) == pytest.approx(1, abs=1e-12) and float(kernel.min()) >= 0
        assert torch.equal(kernel, motion_kernel(seed))
    assert motion_kernel(5, size=33, intensity=0.9).shape == (33, 33)
    distinct = {motion_kernel(seed).numpy().tobytes() for seed in range(20)}
    assert len(distinct) == 20


def test_stored_kernels_are_those_of_the_generator() -> None:
    """Pillow versions may rasterise differently by a few grey levels, not by a different track."""
    for seed in range(16):
        drawn = torch.from_numpy(draw_motion(seed, 61, 0.5).astype(np.float64))
        drawn /= drawn.sum()
        stored = motion_kernel(seed)
        assert float((drawn * stored).sum() / (drawn.norm() * stored.norm())) > 0.95


def test_users_kernels() -> None:
    assert load_kernel([[1, 2], [3, 4]]).tolist() == [[0.1, 0.2], [0.3, 0.4]]
    given = torch.tensor([[-1.0, 3.0]], requires_grad=True)
    assert load_kernel(given).tolist() == [[-0.5, 1.5]] and not load_kernel(given).requires_grad


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
