"""Operators as released by other projects, to reproduce published numbers. Ours are corrected; see each class.

They are selected by an option of their task with the value "published" (or, for the boundary, "reflected").
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.base import LinearOperator, SpectralOperator
from leader.operators.blur import stack_kernels, sum_by_sign
from leader.operators.caches import CastCache
from leader.operators.pointwise import GreyOperator

CUT = 3e-2
"""1-D singular values below it count as zero, as released: not relative to the largest."""
GREY_ROW = (0.3333, 0.3334, 0.3333)


def released_blur_matrix(size: int, taps: Sequence[float], every_tap: bool = False) -> Tensor:
    """The 1-D blur [size, size] of DDRM and DDNM, float64: the last of an odd number of taps is dropped.

    Row i holds taps 0 .. 2 (L // 2) - 1 at columns i - L // 2 onwards, without renormalising, nothing outside: of the papers'
    five taps four remain, with a gain of 0.80 and half a pixel of shift. DDPG's release has every tap.
    """
    half = len(taps) // 2
    matrix = torch.zeros(size, size, dtype=torch.float64)
    for k, tap in enumerate(list(taps)[: None if every_tap else 2 * half]):
        matrix += tap * torch.diag(torch.ones(size - abs(k - half), dtype=torch.float64), k - half)
    return matrix


class ReleasedBlur(SpectralOperator):
    """The separable blur as released by DDRM, DDNM, ProjDiff and EquS, and with every tap by DDPG; y [B, C, H, W].

    Two errors make it differ from a blur: the dropped tap of `released_blur_matrix`, except in DDPG's, and singular values in
    the wrong places. The products of 1-D values are sorted, the coefficients of an image are numbered component by component
    with the C channels of each together, but the values are C copies of the sorted list one after the other: coefficient n of
    channel c gets value number (C n + c) mod (H W). Equal products are kept in the order of their rows and columns, which the
    release does not specify. A and A^+ are consistent, and values below the cut are zero in both.

    >>> ReleasedBlur((3, 8, 8), paper_gaussian_taps())
    ReleasedBlur('deblur-gaussian', [3, 8, 8])
    """

    task = "deblur-gaussian"

    def __init__(self, image_shape: tuple[int, int, int], taps: Sequence[float] | Tensor, every_tap: bool = False) -> None:
        values = [float(tap) for tap in taps]
        if len(values) < 2:
            raise LeaderError(f"The released blur drops the last tap of an odd number; give at least two, found {len(values)}.")
        channels, height, width = image_shape
        down, across = (torch.linalg.svd(released_blur_matrix(size, values, every_tap)) for size in (height, width))
        kept = [torch.where(one.S >= CUT, one.S, 0.0) for one in (down, across)]
        ordered, order = torch.outer(*kept).flatten().sort(descending=True, stable=True)
        number = torch.empty_like(order)
        number[order] = torch.arange(len(order))
        places = channels * number + torch.arange(channels)[:, None]
        super().__init__(image_shape, ordered[places % len(order)].reshape(1, channels, height, width), rcond=0.0)
        self._left = [CastCache(one.U) for one in (down, across)]
        self._right = [CastCache(one.Vh.mT.contiguous()) for one in (down, across)]

    def to(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return self._right[0].like(x).mT @ x @ self._right[1].like(x)

    def back(self, c: Tensor) -> Tensor:
        return self._right[0].like(c) @ c @ self._right[1].like(c).mT

    def data(self, y: Tensor) -> Tensor:
        return self._left[0].like(y).mT @ y @ self._left[1].like(y)

    def measure(self, w: Tensor) -> Tensor:
        return self._left[0].like(w) @ w @ self._left[1].like(w).mT


class ReflectedBlur(LinearOperator):
    """Correlation of every channel with a kernel, the image reflected at its borders, as in DPS and SITCOM; y [B, C, H, W].

    The pixel at the border is not repeated. A correlation mirrors the kernel where `Blur` convolves. It has no known SVD:
    inverses are found by conjugate gradients, and methods that need an SVD reject it.

    kernel  [kh, kw], or [B, 1, kh, kw] for one per image; made to sum to 1

    >>> ReflectedBlur((3, 8, 8), gaussian_kernel(0.5))
    ReflectedBlur('deblur', [3, 8, 8])
    """

    task = "deblur"

    def __init__(self, image_shape: tuple[int, int, int], kernel: Tensor) -> None:
        super().__init__(image_shape)
        self.kernel = stack_kernels(kernel)
        sides = tuple(self.kernel.shape[-2:])
        for size, side in zip(image_shape[1:], sides):
            if side // 2 >= size:
                raise LeaderError(
                    f"A kernel of {side} pixels needs an image larger than {size} pixels to reflect; give a larger image."
                )
        self._index = [_reflection(size, side) for size, side in zip(image_shape[1:], sides)]
        self._frame = tuple(len(index) for index in self._index)
        self._transfer = CastCache(torch.fft.rfft2(self.kernel, s=self._frame))

    def A(self, x: Tensor) -> Tensor:
        self.check_image(x)
        rows, columns = (index.to(x.device) for index in self._index)
        wide = x.index_select(-2, rows).index_select(-1, columns)
        _, height, width = self.image_shape
        return self._filtered(wide, self._transfer.like(x).conj())[..., :height, :width]  # where nothing has wrapped

    def AT(self, y: Tensor) -> Tensor:
        _, height, width = self.image_shape
        wide = torch.nn.functional.pad(y, (0, self._frame[1] - width, 0, self._frame[0] - height))
        spread = self._filtered(wide, self._transfer.like(y))
        rows, columns = (index.to(y.device) for index in self._index)
        tall = spread.new_zeros(*spread.shape[:-2], height, spread.shape[-1]).index_add(-2, rows, spread)
        return tall.new_zeros(*tall.shape[:-1], width).index_add(-1, columns, tall)

    def unit_range(self) -> tuple[Tensor, Tensor]:
        return sum_by_sign(self.kernel)

    def select(self, keep: Tensor) -> ReflectedBlur:
        if self.kernel.shape[0] == 1:
            return self
        chosen = ReflectedBlur(self.image_shape, self.kernel[keep.cpu()])
        chosen.task = self.task
        return chosen

    def _filtered(self, x: Tensor, gain: Tensor) -> Tensor:
        filtered: Tensor = torch.fft.irfft2(gain * torch.fft.rfft2(x), s=self._frame)
        return filtered


def _reflection(size: int, side: int) -> Tensor:
    """The rows of an image of `size` that a kernel of `side` taps reads, from the first output's first tap on."""
    place = torch.arange(-((side - 1) // 2), size + side // 2)
    return (size - 1) - (size - 1 - place.abs()).abs()


class ReleasedColourisation(GreyOperator):
    """Grey by the row (0.3333, 0.3334, 0.3333), as DDRM and DDNM released it; y [B, 1, H, W]. Ours is the mean.

    >>> ReleasedColourisation((3, 8, 8))
    ReleasedColourisation('colourise', [3, 8, 8])
    """

    def __init__(self, image_shape: tuple[int, int, int]) -> None:
        row = torch.tensor(GREY_ROW, dtype=torch.float64)
        first = row / row.norm()
        second = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64) / 2**0.5  # the row is the same at both ends
        super().__init__(image_shape, torch.stack([first, second, torch.linalg.cross(first, second)]), float(row.norm()))

    def unit_range(self) -> tuple[Tensor, Tensor]:
        high = torch.full((1, 1, 1, 1), sum(GREY_ROW), dtype=torch.float64)
        return torch.zeros_like(high), high
