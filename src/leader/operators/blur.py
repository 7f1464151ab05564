"""Circular blur with any kernel, by FFT, with one kernel for all images or one per image.

c = F x with the orthonormal 2-D FFT; with K the transform of the centred kernel the singular values are |K|
and the phase of K belongs to U: A x = F^{-1} (phase |K| c). The kernel is rolled by -(size - 1) // 2 and
the adjoint conjugates in frequency, which is exact for even sizes too (a flipped kernel is not).

For a large frame c holds one half of the frequencies, since the other is its mirror image, and tables are kept in the precision
of images: an eighth of the memory. Componentwise operations on c with equal gains at f and -f, as in all methods, give the same
image; norms in c then differ from those of images.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import Eta, SpectralOperator
from leader.operators.caches import CastCache
from leader.operators.kernels import load_kernel

LARGE_FRAME = 4_000_000
"""For larger frames, in pixels, c holds half of the frequencies."""


class Blur(SpectralOperator):
    """Circular convolution (not correlation) of every channel with a kernel; y [B, C, H, W].

    kernel  [kh, kw], or [B, 1, kh, kw] for one per image; made to sum to 1; larger than the image, it wraps
    rcond   frequencies with |K| below rcond * largest of that image are not inverted

    >>> Blur((3, 8, 8), gaussian_kernel(0.5))(torch.rand(1, 3, 8, 8)).shape
    torch.Size([1, 3, 8, 8])
    """

    task = "deblur"

    def __init__(self, image_shape: tuple[int, int, int], kernel: Tensor, rcond: float = 1e-3) -> None:
        self.kernel = stack_kernels(kernel)
        # Real images have Hermitian transforms: half of the frequencies suffice for A, A^T and the inverses.
        self._half = image_shape[2] // 2 + 1
        self.halved = image_shape[1] * image_shape[2] > LARGE_FRAME
        spread = centre_kernel(self.kernel, image_shape[1], image_shape[2])
        transfer = torch.fft.rfft2(spread) if self.halved else torch.fft.fft2(spread)
        spectrum = transfer.abs()
        largest = spectrum.amax(dim=(1, 2, 3), keepdim=True)
        # The rounding residue of an exact zero has no phase and is not a measurement.
        seen = spectrum > 1e-13 * largest
        spectrum = torch.where(seen, spectrum, 0.0)
        phase = torch.where(seen, transfer / torch.where(seen, spectrum, 1.0), 0.0)
        kept = torch.where(spectrum > rcond * largest, spectrum, 0.0)
        if self.halved:
            phase, spectrum, kept = phase.to(torch.complex64), spectrum.float(), kept.float()
        super().__init__(image_shape, spectrum, rcond=rcond, s=kept)
        self._phase = CastCache(phase)
        self._keep_gains()

    def _keep_gains(self) -> None:
        """Caches the gains if there is room."""
        self._gains: dict[str, CastCache] = {}
        if not self.halved:
            self._gains = {name: CastCache(make(self._phase.constant)) for name, make in self._makers().items()}

    def _makers(self) -> dict[str, Callable[[Tensor], Tensor]]:
        """The gains of A, A^+ and A^T A at half of the frequencies, in the precision of a phase."""

        def transfer(phase: Tensor) -> Tensor:
            return (phase * self.cast(self.spectrum, phase))[..., : self._half]

        def inverse(phase: Tensor) -> Tensor:
            return (phase.conj() * self.filter(torch.reciprocal, phase))[..., : self._half]

        def gram(phase: Tensor) -> Tensor:
            return self.cast(self.spectrum, phase)[..., : self._half].square()

        return {"A": transfer, "A^+": inverse, "A^T A": gram}

    def _gain(self, name: str, like: Tensor) -> Tensor:
        return self._gains[name].like(like) if self._gains else self._makers()[name](self._phase.like(like))

    def to(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._waves(x)

    def _waves(self, x: Tensor) -> Tensor:
        c: Tensor = torch.fft.rfft2(x, norm="ortho") if self.halved else torch.fft.fft2(x, norm="ortho")
        return c

    def back(self, c: Tensor) -> Tensor:
        if self.halved:
            half: Tensor = torch.fft.irfft2(c, s=self.image_shape[1:], norm="ortho")
            return half
        x: Tensor = torch.fft.ifft2(c, norm="ortho").real
        return x

    def data(self, y: Tensor) -> Tensor:
        return self._phase.like(y).conj() * self._waves(y)

    def measure(self, w: Tensor) -> Tensor:
        return self.back(self._phase.like(w) * w)

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._filtered(x, self._gain("A", x))

    def AT(self, y: Tensor) -> Tensor:
        return self._filtered(y, self._gain("A", y).conj())

    def gram(self, x: Tensor) -> Tensor:
        return self._filtered(x, self._gain("A^T A", x))

    def pinv(self, y: Tensor) -> Tensor:
        return self._filtered(y, self._gain("A^+", y))

    def regularised_pinv(self, r: Tensor, eta: Eta) -> Tensor:
        gain = self.tikhonov(eta, r)[..., : self._half]
        return self._filtered(r, gain * self._phase.like(r)[..., : self._half].conj())

    def unit_range(self) -> tuple[Tensor, Tensor]:
        return sum_by_sign(self.kernel)

    def select(self, keep: Tensor) -> Blur:
        if self.kernel.shape[0] == 1:
            return self
        chosen = Blur(self.image_shape, self.kernel[keep.cpu()], self.rcond)
        chosen.task = self.task
        return chosen

    def _filtered(self, x: Tensor, gain: Tensor) -> Tensor:
        waves: Tensor = torch.fft.rfft2(x)
        if self.halved and len(gain) == 1:
            waves *= gain  # a large frame has no room for both
        else:
            waves = gain * waves
        filtered: Tensor = torch.fft.irfft2(waves, s=self.image_shape[1:])
        return filtered


def centre_kernel(kernel: Tensor, height: int, width: int) -> Tensor:
    """Kernels [B, 1, kh, kw] on [B, 1, H, W], their centre ((kh-1)//2, (kw-1)//2) at the origin, wrapped."""
    rows = (torch.arange(kernel.shape[-2]) - (kernel.shape[-2] - 1) // 2).remainder(height)
    columns = (torch.arange(kernel.shape[-1]) - (kernel.shape[-1] - 1) // 2).remainder(width)
    # index_add_ sums what falls on the same pixel: kernels larger than the image wrap correctly.
    tall = kernel.new_zeros(*kernel.shape[:-2], height, kernel.shape[-1]).index_add_(-2, rows, kernel)
    return kernel.new_zeros(*kernel.shape[:-2], height, width).index_add_(-1, columns, tall)


def sum_by_sign(kernel: Tensor) -> tuple[Tensor, Tensor]:
    """The sums [B, 1, 1, 1] of the negative and of the positive taps of kernels [B, 1, kh, kw]."""
    return kernel.clamp_max(0).sum((2, 3), keepdim=True), kernel.clamp_min(0).sum((2, 3), keepdim=True)


def stack_kernels(kernel: Tensor) -> Tensor:
    """A kernel [kh, kw] or kernels [B, 1, kh, kw], checked and normalised, as float64 [1 or B, 1, kh, kw]."""
    values = torch.as_tensor(kernel)
    if values.ndim == 2:
        return load_kernel(values)[None, None]
    if values.ndim != 4 or values.shape[1] != 1 or values.shape[0] == 0:
        raise LeaderError(
            f"A blur kernel has shape [kh, kw], or [batch, 1, kh, kw] for one per image; found {list(values.shape)}."
        )
    return torch.stack([load_kernel(one[0]) for one in values])[:, None]
