"""Inpainting with coloured noise in the known pixels.

Holes and a spectrum have no common basis, so nothing can be whitened: A stays the mask M, and only the regularised inverse uses
the noise. For noise of covariance C, diagonal in Fourier and along the opponent colours, and a reference level r,

    A^T (A A^T + eta C / r^2)^{-1} (y - A x0) + x0

minimises |x - x0|^2 r^2 / eta + (M x - y)^T (M C M^T)^{-1} (M x - y): the proximal map of DiffPIR. I + eta C / r^2 on the known
pixels is solved by conjugate gradients, with two FFTs per iteration; its condition number is at most 1 + eta max C / r^2, small
early on, when eta is small, and rarely above a hundred. Methods that use singular values see white noise of level r.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import Eta
from leader.operators.caches import CastCache
from leader.operators.cg import conjugate_gradients
from leader.operators.pointwise import Inpainting
from leader.operators.whitened import OPPONENT, check_power

TOLERANCE, ITERATIONS = 1e-3, 40
"""Tolerance of a solve: a thousandth of the misfit, far below its noise."""


class ColouredInpainting(Inpainting):
    """A x = mask * x for pictures whose noise has the power [1 or 3, H, W] of `WhitenedBlur`.

    reference  the standard deviation of a pixel, for [0, 1] images: the noise level

    >>> ColouredInpainting((1, 4, 4), box_mask(4, 4, 1, 1, 2, 2), torch.full((1, 4, 4), 0.25)).reference
    0.5
    """

    task = "inpaint-coloured"

    def __init__(self, image_shape: tuple[int, int, int], mask: Tensor, power: Tensor) -> None:
        super().__init__(image_shape, mask)
        if self.mask.shape[0] != 1:
            raise LeaderError(f"Inpainting with coloured noise takes one mask for all images; found {self.mask.shape[0]}.")
        checked = check_power(power, self.image_shape)
        variance = float(checked.mean())
        self.reference = math.sqrt(variance)
        half = image_shape[2] // 2 + 1  # real images have Hermitian transforms
        self._share = CastCache((checked[..., :half] / variance)[None].clone())
        self._rotation = CastCache(OPPONENT) if len(checked) == 3 else None

    def whiten(self, y: Tensor) -> Tensor:
        """y itself [B, C, H, W]: the inverse accounts for the noise."""
        return y

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        mask = self._weights.like(r)
        shift = torch.as_tensor(eta, dtype=r.dtype, device=r.device).reshape(-1, 1, 1, 1)

        def apply(v: Tensor) -> Tensor:
            return v + shift * (mask * self._apply_covariance(v))  # v is zero where nothing is known, and stays so

        solution, self.residual = conjugate_gradients(apply, mask * r, TOLERANCE, ITERATIONS)
        return solution

    def select(self, keep: Tensor) -> ColouredInpainting:
        return self

    def _apply_covariance(self, x: Tensor) -> Tensor:
        """C x / r^2."""
        turned = x if self._rotation is None else torch.einsum("dc,bchw->bdhw", self._rotation.like(x), x)
        waves = torch.fft.rfft2(turned)
        waves *= self._share.like(x)
        made: Tensor = torch.fft.irfft2(waves, s=self.image_shape[1:])
        return made if self._rotation is None else torch.einsum("dc,bdhw->bchw", self._rotation.like(x), made)
