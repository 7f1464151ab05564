"""Super-resolution: the image of a camera with fewer pixels. Bicubic (antialiased) and average pooling.

Both are separable. The output has ceil(n / factor) samples along an axis of n pixels, or as many as in `small`; sample r is in
the middle of the cell of pixels scale*r ... scale*(r+1)-1. The scale is an integer factor, whose last cell may be partial, or
else n over the number of samples, so that cells fill the axis.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.separable import Factor, SeparableOperator, check_side


class ResizeOperator(SeparableOperator):
    """Downsampling along both axes; `small` (rows, columns) takes precedence over the factor."""

    def __init__(self, image_shape: tuple[int, int, int], factor: float = 4, small: tuple[int, int] | None = None) -> None:
        rows, columns = count_samples(image_shape, factor, small)
        whole = None if small is not None or factor != int(factor) else int(factor)
        _, height, width = image_shape
        vertical, horizontal = (
            _make_factor(self.make_matrix, size, count, whole or size / count)
            for size, count in ((height, rows), (width, columns))
        )
        super().__init__(image_shape, vertical, horizontal)

    @classmethod
    def make_matrix(cls, size: int, count: int, scale: float) -> Tensor:
        """The 1-D factor [count, size], float64; scale: the factor if it is an integer, else size / count."""
        raise NotImplementedError


@lru_cache(maxsize=16)
def _make_factor(make_matrix: Callable[[int, int, float], Tensor], size: int, count: int, scale: float) -> Factor:
    check_side(size)
    return Factor(make_matrix(size, count, scale), rcond=1e-3)


class BicubicSR(ResizeOperator):
    """Keys' cubic (a = -0.5) widened by the factor, half-sample symmetric boundary.

    y [B, C, ceil(H / factor), ceil(W / factor)]

    >>> BicubicSR((3, 8, 8), 2)(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
    """

    task = "sr-bicubic"

    @classmethod
    def make_matrix(cls, size: int, count: int, scale: float) -> Tensor:
        return bicubic_matrix(size, scale, count)


class AveragePoolSR(ResizeOperator):
    """The mean of each factor x factor cell; partial cells at the far border average the pixels they have.

    >>> AveragePoolSR((3, 8, 8), 2)(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 3, 4, 4])
    """

    task = "sr-average"

    @classmethod
    def make_matrix(cls, size: int, count: int, scale: float) -> Tensor:
        return average_matrix(size, scale, count)


def count_samples(image_shape: tuple[int, int, int], factor: float, small: tuple[int, int] | None = None) -> tuple[int, int]:
    """(rows, columns) of a downsampled image: those given, or ceil(side / factor).

    Rejects factors outside 1 to the smaller side of the image, and sizes larger than the image.
    """
    _, height, width = image_shape
    if small is not None:
        counts = tuple(small) if isinstance(small, (tuple, list)) else ()
        whole = len(counts) == 2 and all(isinstance(count, int) and not isinstance(count, bool) for count in counts)
        if not whole or not (1 <= counts[0] <= height and 1 <= counts[1] <= width):
            raise LeaderError(f"An image of {height} x {width} cannot become one of {small}; give fewer rows and columns.")
        return counts[0], counts[1]
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor <= min(height, width):
        raise LeaderError(
            f"The super-resolution factor must be a number from 1 to the smaller side of the {height} x "
            f"{width} image; found {factor}."
        )
    return math.ceil(height / factor), math.ceil(width / factor)


def keys_cubic(distance: Tensor, a: float = -0.5) -> Tensor:
    """Keys' cubic convolution kernel, zero beyond distance 2."""
    d = distance.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, torch.zeros_like(d)))


def bicubic_matrix(size: int, scale: float, rows: int | None = None) -> Tensor:
    """The 1-D factor [rows, size] in float64, rows = ceil(size / scale) if not given; rows sum to 1."""
    count = math.ceil(size / scale) if rows is None else rows
    middle = scale * torch.arange(count, dtype=torch.float64) + (scale - 1) / 2
    first = (middle - 2 * scale).ceil().long()
    columns = first[:, None] + torch.arange(math.floor(4 * scale) + 1)
    weights = keys_cubic((columns - middle[:, None]) / scale)
    weights = weights / weights.sum(1, keepdim=True)
    matrix = torch.zeros(count, size, dtype=torch.float64)
    return matrix.scatter_add_(1, symmetric_index(columns, size), weights)


def average_matrix(size: int, scale: float, rows: int | None = None) -> Tensor:
    """The 1-D factor [rows, size] of means over cells, in float64: pixels are weighted by the share of them inside a cell."""
    count = math.ceil(size / scale) if rows is None else rows
    start = scale * torch.arange(count, dtype=torch.float64)[:, None]
    pixel = torch.arange(size, dtype=torch.float64)
    shared = torch.minimum(pixel + 1, start + scale) - torch.maximum(pixel, start)
    shared = torch.where(shared > 1e-9, shared, 0.0)
    return shared / shared.sum(1, keepdim=True)


def symmetric_index(index: Tensor, size: int) -> Tensor:
    """Folds any index into 0..size-1 by half-sample symmetric reflection: -1 -> 0, size -> size - 1."""
    folded = index.remainder(2 * size)
    return torch.minimum(folded, 2 * size - 1 - folded)
