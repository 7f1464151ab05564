"""Blur by a column and a row kernel, with zero or symmetric boundary: the papers' Gaussian deblurring."""

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from leader.errors import LeaderError, unknown_name
from leader.operators.resize import symmetric_index
from leader.operators.separable import Factor, SeparableOperator, check_side

BOUNDARIES = ("zero", "symmetric")


class SeparableBlur(SeparableOperator):
    """Convolution with kernel_v along columns and kernel_h along rows; y [B, C, H, W].

    kernel_v, kernel_h  taps, all of them used as given (not normalised); kernel_h defaults to kernel_v
    boundary            "zero": nothing outside, so borders drift to mid-grey; "symmetric": half-sample mirror
    rcond_1d            1-D singular values below rcond_1d * largest are not inverted (the papers cut at 3e-2)

    >>> SeparableBlur((3, 8, 8), gaussian_taps(0.5))
    SeparableBlur('deblur-gaussian', [3, 8, 8])
    """

    task = "deblur-gaussian"

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        kernel_v: Sequence[float] | Tensor,
        kernel_h: Sequence[float] | Tensor | None = None,
        boundary: str = "zero",
        rcond_1d: float = 3e-2,
    ) -> None:
        if boundary not in BOUNDARIES:
            raise unknown_name("boundary", boundary, BOUNDARIES)
        vertical = _check_taps(kernel_v)
        horizontal = vertical if kernel_h is None else _check_taps(kernel_h)
        _, height, width = image_shape
        super().__init__(
            image_shape, _blur_factor(height, vertical, boundary, rcond_1d), _blur_factor(width, horizontal, boundary, rcond_1d)
        )


def blur_matrix(size: int, taps: Sequence[float], boundary: str) -> Tensor:
    """The convolution matrix [size, size] in float64: row i holds tap k at column i - (k - (L - 1) // 2)."""
    weights = torch.tensor(taps, dtype=torch.float64)
    offsets = (len(taps) - 1) // 2 - torch.arange(len(taps))
    columns = torch.arange(size)[:, None] + offsets
    values = weights.expand(size, -1)
    if boundary == "zero":
        values = torch.where((columns >= 0) & (columns < size), values, 0.0)
        columns = columns.clamp(0, size - 1)
    else:
        columns = symmetric_index(columns, size)
    return torch.zeros(size, size, dtype=torch.float64).scatter_add_(1, columns, values)


def _check_taps(taps: Sequence[float] | Tensor) -> tuple[float, ...]:
    values = torch.as_tensor(taps, dtype=torch.float64)
    if values.ndim != 1 or not bool(torch.isfinite(values).all()) or not bool((values != 0).any()):
        raise LeaderError(f"The taps of a separable blur must be finite numbers, not all zero; found {taps}.")
    return tuple(values.tolist())


@lru_cache(maxsize=8)
def _blur_factor(size: int, taps: tuple[float, ...], boundary: str, rcond: float) -> Factor:
    check_side(size)
    return Factor(blur_matrix(size, taps, boundary), rcond)
