"""Kernels: published values, stored motion blurs, and what a user may bring."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from leader.errors import LeaderError
from leader.operators import gaussian_kernel, load_kernel, motion_kernel
from leader.operators.kernels.motion import draw_motion


def test_gaussian_kernel_equals_a_filtered_delta() -> None:
    delta = np.zeros((61, 61))
    delta[30, 30] = 1
    expected = ndimage.gaussian_filter(delta, 3.0)
    kernel = gaussian_kernel(3.0)
    assert kernel.shape == (25, 25)
    assert np.abs(kernel.numpy() - expected[18:43, 18:43]).max() <= 1e-12
    assert float(kernel.sum()) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("std", [0.0, -1.0, float("nan"), float("inf")])
def test_wrong_width_is_refused(std: float) -> None:
    with pytest.raises(LeaderError, match="must be a positive number"):
        gaussian_kernel(std)


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


def test_wrong_motion_is_refused() -> None:
    with pytest.raises(LeaderError, match=">= 0"):
        motion_kernel(-1)
    for wrong in ({"intensity": 1.5}, {"intensity": -0.1}, {"size": 2}):
        with pytest.raises(LeaderError, match="size >= 3 and intensity in"):
            motion_kernel(1, **wrong)


def test_users_kernels() -> None:
    assert load_kernel([[1, 2], [3, 4]]).tolist() == [[0.1, 0.2], [0.3, 0.4]]
    given = torch.tensor([[-1.0, 3.0]], requires_grad=True)
    assert load_kernel(given).tolist() == [[-0.5, 1.5]] and not load_kernel(given).requires_grad
    for wrong, text in [
        (np.zeros((3, 3)), "sums to 0"),
        (np.array([[1.0, np.nan]]), "NaN or infinite"),
        (np.array([[-1.0, -2.0]]), "sums to -3"),
        (np.array([[1.0, -1.0]]), "positive sum"),
        (np.ones(3), "table of numbers"),
        (np.ones((0, 3)), "table of numbers"),
    ]:
        with pytest.raises(LeaderError, match=text):
            load_kernel(wrong)
