"""UCPM inside and outside the loop: its closed form in NumPy, the place where it acts, its maps and its pirp term."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from leader.plugins import UCPM
from leader.plugins.base import StepInfo
from leader.plugins.image_priors import adjoint, differences
from leader.schedule import uniform_grid

SHAPE = (3, 8, 8)


def draw(seed: int, scale: float = 1.0, count: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(count, *SHAPE, generator=generator, dtype=torch.float64)


def moment(ids: list[int], positions: list[int]) -> StepInfo:
    return StepInfo(ids, positions, [0] * len(ids), torch.zeros(len(ids), dtype=torch.long), [uniform_grid(20)] * len(ids))


def test_the_shuffled_map_differs_by_image_and_position_and_keeps_channels_together() -> None:
    sigma = draw(5).abs().expand(2, -1, -1, -1).contiguous()
    plugin = UCPM(map="shuffle")
    first, second = plugin._mapped(sigma, moment([0, 1], [4, 4]))
    later = plugin._mapped(sigma, moment([0, 1], [5, 4]))[0]
    assert torch.equal(first, plugin._mapped(sigma[:1], moment([0], [4]))[0]), "the same image and position, the same order"
    assert not torch.equal(first, second) and not torch.equal(first, later)
    pixels = {tuple(pixel) for pixel in sigma[0].flatten(1).T.tolist()}
    assert {tuple(pixel) for pixel in first.flatten(1).T.tolist()} == pixels


@pytest.mark.parametrize("sharpen", [0.4, -0.4])
def test_sharpening_of_either_sign_is_the_negative_laplacian_where_sigma_is_small(sharpen: float) -> None:
    x0, sigma = draw(8), 0.02 * draw(9).abs()
    mean = sigma.mean((1, 2, 3), keepdim=True)
    weight = (sharpen * mean * (-sigma / mean).exp()).clamp_max(1 / 32)
    expected = weight * adjoint(differences(x0))
    assert torch.allclose(UCPM(lam=0.0, sharpen=sharpen).change(x0, sigma), expected, atol=1e-12)
