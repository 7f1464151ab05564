"""Denoising where the noise differs from pixel to pixel: each pixel counts by the inverse of its noise.

With W = reference / (standard deviation of the noise of a pixel), y_w = W y has white noise of standard deviation `reference`
and the operator A = W: diagonal, its singular values are the weights. Only ratios of noise to singular values enter the
methods; the reference, the geometric mean of the standard deviation, chooses the presets.
"""

from __future__ import annotations

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.caches import CastCache
from leader.operators.pointwise import DiagonalOperator


class WeightedPixels(DiagonalOperator):
    """A x = weights * x; y [B, C, H, W] is a picture that `whiten` was applied to.

    noise  [C, H, W] > 0, the standard deviation of the noise of every pixel, for [0, 1] images
    task   under which presets know it

    >>> noise = torch.tensor([[[0.1, 0.4]]])
    >>> WeightedPixels((1, 1, 2), noise).whiten(noise[None])
    tensor([[[[0.2000, 0.2000]]]])
    """

    def __init__(self, image_shape: tuple[int, int, int], noise: Tensor, task: str = "denoise") -> None:
        values = torch.as_tensor(noise).detach().to("cpu", torch.float64)
        if tuple(values.shape) != tuple(image_shape):
            raise LeaderError(f"The noise of images {list(image_shape)} has their shape; found {list(values.shape)}.")
        if not bool(torch.isfinite(values).all()) or not float(values.min()) > 0:
            raise LeaderError("The noise of every pixel must be finite and above 0.")
        self.reference = float(values.log().mean().exp())
        super().__init__(image_shape, (self.reference / values)[None], rcond=0.0)  # every pixel is measured
        self.task = task
        self._weights = CastCache(self.spectrum)

    def whiten(self, y: Tensor) -> Tensor:
        """W y for an ordinary picture y [B, C, H, W]."""
        return self.A(y)

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._weights.like(x) * x

    def AT(self, y: Tensor) -> Tensor:
        return self._weights.like(y) * y
