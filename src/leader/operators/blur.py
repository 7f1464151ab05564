"""Circular blur with any kernel, by FFT, with one kernel for all images or one per image.

c = F x with the orthonormal 2-D FFT; with K the transform of the centred kernel the singular values are |K|
and the phase of K belongs to U: A x = F^{-1} (phase |K| c). The kernel is rolled by -(size - 1) // 2 and
the adjoint conjugates in frequency, which is exact for even sizes too (a flipped kernel is not).
"""

from __future__ import annotations

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import Eta, SpectralOperator
from leader.operators.caches import CastCache
from leader.operators.kernels import load_kernel


class Blur(SpectralOperator):
    """Circular convolution (not correlation) of every channel with a kernel; y [B, C, H, W].

    kernel  [kh, kw], or [B, 1, kh, kw] for one per image; made to sum to 1; larger than the image, it wraps
    rcond   frequencies with |K| below rcond * largest of that image are not inverted
    """

    task = "deblur"

    def __init__(self, image_shape: tuple[int, int, int], kernel: Tensor, rcond: float = 1e-3) -> None:
        self.kernel = kernel_stack(kernel)
        transfer = torch.fft.fft2(centred(self.kernel, image_shape[1], image_shape[2]))
        spectrum = transfer.abs()
        largest = spectrum.amax(dim=(1, 2, 3), keepdim=True)
        # What rounding left of an exact zero has no phase and is no measurement.
        seen = spectrum > 1e-13 * largest
        spectrum = torch.where(seen, spectrum, 0.0)
        phase = torch.where(seen, transfer / torch.where(seen, spectrum, 1.0), 0.0)
        super().__init__(image_shape, spectrum, rcond=rcond, s=torch.where(spectrum > rcond * largest, spectrum, 0.0))
        # Real images have Hermitian transforms: half of the frequencies suffice for A, A^T and the inverses.
        self._half = image_shape[2] // 2 + 1
        self._phase = CastCache(phase)
        self._transfer = CastCache((phase * spectrum)[..., : self._half])
        self._inverse = CastCache((phase.conj() * self.filter(torch.reciprocal, spectrum))[..., : self._half])

    def to(self, x: Tensor) -> Tensor:
        self.check_image(x)
        c: Tensor = torch.fft.fft2(x, norm="ortho")
        return c

    def back(self, c: Tensor) -> Tensor:
        x: Tensor = torch.fft.ifft2(c, norm="ortho").real
        return x

    def data(self, y: Tensor) -> Tensor:
        w: Tensor = self._phase.like(y).conj() * torch.fft.fft2(y, norm="ortho")
        return w

    def measure(self, w: Tensor) -> Tensor:
        return self.back(self._phase.like(w) * w)

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._filtered(x, self._transfer.like(x))

    def AT(self, y: Tensor) -> Tensor:
        return self._filtered(y, self._transfer.like(y).conj())

    def pinv(self, y: Tensor) -> Tensor:
        return self._filtered(y, self._inverse.like(y))

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        gain = self.tikhonov(eta, r)[..., : self._half]
        return self._filtered(r, gain * self._phase.like(r)[..., : self._half].conj())

    def unit_range(self) -> tuple[Tensor, Tensor]:
        negative, positive = self.kernel.clamp_max(0), self.kernel.clamp_min(0)
        return negative.sum((2, 3), keepdim=True), positive.sum((2, 3), keepdim=True)

    def select(self, keep: Tensor) -> Blur:
        if self.kernel.shape[0] == 1:
            return self
        chosen = Blur(self.image_shape, self.kernel[keep.cpu()], self.rcond)
        chosen.task = self.task
        return chosen

    def _filtered(self, x: Tensor, gain: Tensor) -> Tensor:
        filtered: Tensor = torch.fft.irfft2(gain * torch.fft.rfft2(x), s=self.image_shape[1:])
        return filtered


def centred(kernel: Tensor, height: int, width: int) -> Tensor:
    """Kernels [B, 1, kh, kw] on [B, 1, H, W], their centre ((kh-1)//2, (kw-1)//2) at the origin, wrapped."""
    rows = (torch.arange(kernel.shape[-2]) - (kernel.shape[-2] - 1) // 2).remainder(height)
    columns = (torch.arange(kernel.shape[-1]) - (kernel.shape[-1] - 1) // 2).remainder(width)
    # index_add_ sums what falls on the same pixel: kernels larger than the image wrap correctly.
    tall = kernel.new_zeros(*kernel.shape[:-2], height, kernel.shape[-1]).index_add_(-2, rows, kernel)
    return kernel.new_zeros(*kernel.shape[:-2], height, width).index_add_(-1, columns, tall)


def kernel_stack(kernel: Tensor) -> Tensor:
    """A kernel [kh, kw] or kernels [B, 1, kh, kw], checked and normalised, as float64 [1 or B, 1, kh, kw]."""
    values = torch.as_tensor(kernel)
    if values.ndim == 2:
        return load_kernel(values)[None, None]
    if values.ndim != 4 or values.shape[1] != 1 or values.shape[0] == 0:
        raise LeaderError(
            f"A blur kernel has shape [kh, kw], or [batch, 1, kh, kw] for one per image; found {list(values.shape)}."
        )
    return torch.stack([load_kernel(one[0]) for one in values])[:, None]
