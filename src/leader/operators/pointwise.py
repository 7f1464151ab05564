"""Pixelwise operators and masks: denoising (also with noise that varies by pixel), inpainting, colourisation."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import SpectralOperator
from leader.operators.caches import CastCache


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

    @cached_property
    def _weights(self) -> CastCache:
        return CastCache(self.spectrum)

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._weights.like(x) * x

    def AT(self, y: Tensor) -> Tensor:
        return self._weights.like(y) * y

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

    def data(self, y: Tensor) -> Tensor:
        return self._weights.like(y) * y

    def gram(self, x: Tensor) -> Tensor:
        return self.data(x)

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


def random_mask(height: int, width: int, missing: float = 0.5, seed: int = 0) -> Tensor:
    """A mask [H, W] float32 with round(missing * H * W) missing pixels, the same on every device.

    >>> random_mask(8, 6, 0.5).shape
    torch.Size([8, 6])
    """
    if not 0 <= missing < 1:
        raise LeaderError(f"The missing fraction must lie in [0, 1); found {missing}.")
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(height * width, generator=generator)
    mask = torch.ones(height * width)
    mask[order[: round(missing * height * width)]] = 0
    return mask.reshape(height, width)


def box_mask(height: int, width: int, top: int, left: int, box_height: int, box_width: int) -> Tensor:
    """A mask [H, W] float32 whose rectangle of box_height x box_width pixels at (top, left) is missing.

    >>> box_mask(8, 8, 2, 2, 4, 4).mean()
    tensor(0.7500)
    """
    inside = min(top, left) >= 0 and top + box_height <= height and left + box_width <= width
    if not inside or box_height < 1 or box_width < 1:
        raise LeaderError(
            f"The box of {box_height} x {box_width} pixels at ({top}, {left}) does not lie inside {height} x {width} pixels."
        )
    mask = torch.ones(height, width)
    mask[top : top + box_height, left : left + box_width] = 0
    return mask


def check_mask(mask: Tensor, height: int, width: int) -> Tensor:
    """A user's mask [H, W], [1, H, W] or [B, 1, H, W] as float64 [1 or B, 1, H, W]."""
    values = torch.as_tensor(mask).to(torch.float64).cpu()
    if values.ndim == 2:
        values = values[None]
    if values.ndim == 3:
        values = values[None]
    if values.ndim != 4 or values.shape[1] != 1 or tuple(values.shape[2:]) != (height, width):
        raise LeaderError(
            f"The mask has shape {list(mask.shape)}; expected [{height}, {width}] or [batch, 1, {height}, {width}]."
        )
    if not bool(((values == 0) | (values == 1)).all()):
        raise LeaderError("A mask may hold only 0 (missing) and 1 (observed); threshold it first.")
    if not bool((values.flatten(1).sum(1) > 0).all()):
        raise LeaderError("The mask leaves no pixel observed; at least one pixel must be 1.")
    return values


class WeightedPixels(DiagonalOperator):
    """Denoising with noise that varies from pixel to pixel: A x = W x; y [B, C, H, W] is a picture after `whiten`.

    With W = reference / (standard deviation of the noise of a pixel), y has white noise of standard deviation `reference`, and
    the singular values are the weights. Only ratios of noise to singular values enter the methods; the reference, the geometric
    mean of the standard deviation, determines the presets.

    noise  [C, H, W] > 0, the standard deviation of the noise of every pixel, for [0, 1] images
    task   its name in presets

    >>> noise = torch.tensor([[[0.1, 0.4]]])
    >>> WeightedPixels((1, 1, 2), noise).whiten(noise[None])
    tensor([[[[0.2000, 0.2000]]]])
    """

    def __init__(self, image_shape: tuple[int, int, int], noise: Tensor, task: str = "denoise") -> None:
        values = torch.as_tensor(noise).detach().to("cpu", torch.float64)
        if tuple(values.shape) != tuple(image_shape):
            raise LeaderError(f"The noise of images {list(image_shape)} must have the same shape; found {list(values.shape)}.")
        if not bool(torch.isfinite(values).all()) or not float(values.min()) > 0:
            raise LeaderError("The noise of every pixel must be finite and greater than 0.")
        self.reference = float(values.log().mean().exp())
        super().__init__(image_shape, (self.reference / values)[None], rcond=0.0)  # every pixel is measured
        self.task = task

    def whiten(self, y: Tensor) -> Tensor:
        """W y for an ordinary picture y [B, C, H, W]."""
        return self.A(y)
