"""Operators that act pixel by pixel: denoising, inpainting, colourisation."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import SpectralOperator
from leader.operators.caches import CastCache
from leader.operators.masks import check_mask


class DiagonalOperator(SpectralOperator):
    """A x = s * x, a weight s >= 0 per entry: pixels are their own coefficients, c = x and y = s * c; y [B, C, H, W]."""

    def to(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return x

    def back(self, c: Tensor) -> Tensor:
        return c

    def data(self, y: Tensor) -> Tensor:
        return y

    def measure(self, w: Tensor) -> Tensor:
        return w

    def unit_range(self) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(self.spectrum), self.spectrum


class Denoising(DiagonalOperator):
    """A = I.

    >>> Denoising((3, 8, 8))
    Denoising('denoise', [3, 8, 8])
    """

    task = "denoise"

    def __init__(self, image_shape: tuple[int, int, int]) -> None:
        super().__init__(image_shape, torch.ones(1, 1, 1, 1, dtype=torch.float64))


class Inpainting(DiagonalOperator):
    """A x = mask * x: y keeps the shape of the image, with zeros where nothing was observed.

    mask  [H, W], [1, H, W] or [B, 1, H, W]; 1 = observed; shared by the channels

    >>> Inpainting((3, 8, 8), box_mask(8, 8, 2, 2, 4, 4))
    Inpainting('inpaint', [3, 8, 8])
    """

    task = "inpaint"

    def __init__(self, image_shape: tuple[int, int, int], mask: Tensor) -> None:
        self.mask = check_mask(mask, *image_shape[1:])
        super().__init__(image_shape, self.mask)
        self._cast_mask = CastCache(self.mask)

    def data(self, y: Tensor) -> Tensor:
        return self._cast_mask.like(y) * y

    def measure(self, w: Tensor) -> Tensor:
        return self._cast_mask.like(w) * w

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self.measure(x)

    def AT(self, y: Tensor) -> Tensor:
        return self.data(y)

    def pinv(self, y: Tensor) -> Tensor:
        return self.data(y)

    def select(self, keep: Tensor) -> Inpainting:
        if self.mask.shape[0] == 1:
            return self
        return Inpainting(self.image_shape, self.mask[keep.cpu()])


class GreyOperator(SpectralOperator):
    """One grey value per pixel, the channels weighted by a row [3] of positive weights: y [B, 1, H, W].

    c holds, per pixel, the coordinates along the row and two orthonormal colour directions.

    directions  [3, 3] float64, orthonormal; the first along the row
    gain        the length of the row, the one singular value
    """

    task = "colourise"

    def __init__(self, image_shape: tuple[int, int, int], directions: Tensor, gain: float) -> None:
        if image_shape[0] != 3:
            raise LeaderError(f"Colourisation needs images of 3 channels; found {image_shape[0]}.")
        super().__init__(image_shape, torch.tensor([gain, 0, 0], dtype=torch.float64).reshape(1, 3, 1, 1))
        self._rotation = CastCache(directions)

    def to(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return torch.einsum("dc,bchw->bdhw", self._rotation.like(x), x)

    def back(self, c: Tensor) -> Tensor:
        return torch.einsum("dc,bdhw->bchw", self._rotation.like(c), c)

    def data(self, y: Tensor) -> Tensor:
        return torch.cat([y, torch.zeros_like(y), torch.zeros_like(y)], dim=1)

    def measure(self, w: Tensor) -> Tensor:
        return w[:, :1]


class Colourisation(GreyOperator):
    """The mean of the three channels: y [B, 1, H, W]; singular value 1/sqrt(3).

    >>> Colourisation((3, 8, 8))(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 1, 8, 8])
    """

    def __init__(self, image_shape: tuple[int, int, int]) -> None:
        directions = torch.tensor([[1, 1, 1], [1, -1, 0], [1, 1, -2]], dtype=torch.float64)
        super().__init__(image_shape, directions / directions.norm(dim=1, keepdim=True), 1 / math.sqrt(3))

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return x.mean(1, keepdim=True)

    def AT(self, y: Tensor) -> Tensor:
        return (y / 3).expand(-1, 3, -1, -1)

    def pinv(self, y: Tensor) -> Tensor:
        return y.expand(-1, 3, -1, -1)

    def unit_range(self) -> tuple[Tensor, Tensor]:
        one = torch.ones(1, 1, 1, 1, dtype=torch.float64)
        return torch.zeros_like(one), one
