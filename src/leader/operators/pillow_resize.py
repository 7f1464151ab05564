"""Thumbnails as Pillow makes them: nearest neighbour, box, bilinear, bicubic and Lanczos, to the rounding of 8 bits.

`resize` of Pillow widens every kernel by the factor when it shrinks (nearest neighbour excepted, which takes the pixel in
the middle of the cell) and gives the weights that would fall beyond the border to the pixels that are there. Bicubic
differs from `BicubicSR` at the border alone, box from `AveragePoolSR` in partial cells alone: Pillow has none, its scale is
that of the whole sides, n / ceil(n / factor). The smooth ones are to presets what bicubic is: kinds of "sr-bicubic".
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import ClassVar

import torch
from torch import Tensor

from leader.operators.resize import ResizeOperator, keys_cubic


class PillowSR(ResizeOperator):
    """PIL.Image.resize to ceil(H / factor) x ceil(W / factor), or to `small`; `kernel` names one of KERNELS."""

    kernel: ClassVar[str]

    @classmethod
    def make_matrix(cls, size: int, count: int, scale: float) -> Tensor:
        return pillow_matrix(size, count, cls.kernel)


class NearestSR(PillowSR):
    task = "sr-nearest"
    kernel = "nearest"


class SoftNearestSR(PillowSR):
    """Around the pixel that nearest neighbour takes, the mean of those within half a cell, the nearer the heavier.

    A single pixel in sixteen leaves a prior too little to begin with; that it is no mean counts as noise.
    """

    task = "sr-nearest"
    kernel = "soft-nearest"


class BoxSR(PillowSR):
    task = "sr-bicubic"
    kernel = "box"


class BilinearSR(PillowSR):
    task = "sr-bicubic"
    kernel = "bilinear"


class PillowBicubicSR(PillowSR):
    task = "sr-bicubic"
    kernel = "bicubic"


class LanczosSR(PillowSR):
    task = "sr-bicubic"
    kernel = "lanczos"


PILLOW_DOWNSAMPLING = {
    "nearest": NearestSR,
    "soft-nearest": SoftNearestSR,
    "box": BoxSR,
    "bilinear": BilinearSR,
    "pillow-bicubic": PillowBicubicSR,
    "lanczos": LanczosSR,
}


def _box(distance: Tensor) -> Tensor:
    return ((distance > -0.5) & (distance <= 0.5)).to(distance)


def _triangle(distance: Tensor) -> Tensor:
    return (1 - distance.abs()).clamp_min(0)


def _lanczos(distance: Tensor) -> Tensor:
    inside = (distance >= -3) & (distance < 3)
    return torch.where(inside, torch.sinc(distance) * torch.sinc(distance / 3), 0.0)


KERNELS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "box": (_box, 0.5),
    "bilinear": (_triangle, 1.0),
    "bicubic": (keys_cubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}
"""Pillow's kernels over the distance in pixels of the thumbnail, with the distance beyond which they are zero."""


def pillow_matrix(size: int, rows: int, kernel: str) -> Tensor:
    """The 1-D factor [rows, size] in float64; rows sum to 1."""
    scale = size / rows
    pixel = torch.arange(size, dtype=torch.float64)
    if kernel in ("nearest", "soft-nearest"):  # Pillow adds up its places, which decides where they fall between two pixels
        places = torch.tensor(list(accumulate([scale] * (rows - 1), initial=scale / 2)), dtype=torch.float64)
        taken = places.floor()[:, None]
        if kernel == "nearest":
            return (pixel == taken).to(torch.float64)
        table = _triangle((pixel - taken) / max(1.0, scale / 2))
        return table / table.sum(1, keepdim=True)
    centre = (torch.arange(rows, dtype=torch.float64) + 0.5) * scale
    weight, support = KERNELS[kernel]
    reach = support * scale
    first = (centre - reach + 0.5).trunc().clamp_min(0)[:, None]
    after = (centre + reach + 0.5).trunc().clamp_max(size)[:, None]
    table = weight((pixel + 0.5 - centre[:, None]) / scale)
    table = torch.where((pixel >= first) & (pixel < after), table, 0.0)
    return table / table.sum(1, keepdim=True)
