"""Super-resolution: what a camera of fewer pixels would have seen. Bicubic (antialiased) and average pooling.

Both are separable. The output has ceil(n / factor) samples along an axis of n pixels; sample r sits in the
middle of the cell of pixels factor*r ... factor*(r+1)-1, for even and odd factors alike.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.separable import Factor, SeparableOperator, check_side


class BicubicSR(SeparableOperator):
    """Keys' cubic (a = -0.5) widened by the factor, half-sample symmetric boundary.

    y [B, C, ceil(H / factor), ceil(W / factor)]

    >>> BicubicSR((3, 8, 8), 2)(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
    """

    task = "sr-bicubic"

    def __init__(self, image_shape: tuple[int, int, int], factor: int = 4) -> None:
        self.factor = checked_factor(factor, image_shape)
        _, height, width = image_shape
        super().__init__(image_shape, _bicubic_factor(height, factor), _bicubic_factor(width, factor))


class AveragePoolSR(SeparableOperator):
    """The mean of each factor x factor cell; partial cells at the far border average the pixels they have.

    >>> AveragePoolSR((3, 8, 8), 2)(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
    """

    task = "sr-average"

    def __init__(self, image_shape: tuple[int, int, int], factor: int = 4) -> None:
        self.factor = checked_factor(factor, image_shape)
        _, height, width = image_shape
        super().__init__(image_shape, _average_factor(height, factor), _average_factor(width, factor))


def checked_factor(factor: int, image_shape: tuple[int, int, int]) -> int:
    """Refuses factors that are no integer from 1 to the smaller side of the image."""
    _, height, width = image_shape
    if not isinstance(factor, int) or not 1 <= factor <= min(height, width):
        raise LeaderError(
            f"The super-resolution factor must be an integer from 1 to the smaller side of the {height} x "
            f"{width} image; found {factor}."
        )
    return factor


def keys_cubic(distance: Tensor) -> Tensor:
    """Keys' cubic convolution kernel with a = -0.5, zero beyond distance 2."""
    d = distance.abs()
    near = (1.5 * d - 2.5) * d * d + 1
    far = ((-0.5 * d + 2.5) * d - 4) * d + 2
    return torch.where(d <= 1, near, torch.where(d < 2, far, torch.zeros_like(d)))


def bicubic_matrix(size: int, factor: int) -> Tensor:
    """The 1-D factor [ceil(size/factor), size] in float64; rows sum to 1."""
    rows = -(-size // factor)
    middle = factor * torch.arange(rows, dtype=torch.float64) + (factor - 1) / 2
    first = (middle - 2 * factor).ceil().long()
    columns = first[:, None] + torch.arange(4 * factor + 1)
    weights = keys_cubic((columns - middle[:, None]) / factor)
    weights = weights / weights.sum(1, keepdim=True)
    matrix = torch.zeros(rows, size, dtype=torch.float64)
    return matrix.scatter_add_(1, symmetric_index(columns, size), weights)


def average_matrix(size: int, factor: int) -> Tensor:
    """The 1-D factor [ceil(size/factor), size] of means over cells, in float64."""
    cell = torch.arange(size) // factor
    members = (cell == torch.arange(-(-size // factor))[:, None]).to(torch.float64)
    return members / members.sum(1, keepdim=True)


def symmetric_index(index: Tensor, size: int) -> Tensor:
    """Folds any index into 0..size-1 by half-sample symmetric reflection: -1 -> 0, size -> size - 1."""
    folded = index.remainder(2 * size)
    return torch.minimum(folded, 2 * size - 1 - folded)


@lru_cache(maxsize=8)
def _bicubic_factor(size: int, factor: int) -> Factor:
    check_side(size)
    return Factor(bicubic_matrix(size, factor), rcond=1e-3)


@lru_cache(maxsize=8)
def _average_factor(size: int, factor: int) -> Factor:
    check_side(size)
    return Factor(average_matrix(size, factor), rcond=1e-3)
