"""The orthonormal discrete cosine transform (type II) of images.

Short sides by matrix products, long ones by one real FFT of both axes. Makhoul's reordering: the even samples, then the odd
ones backwards, have a Fourier transform whose rotated real and imaginary parts are the cosine coefficients.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from leader.transforms import dct_matrix

SHORT = 160
"""Where no side has more samples matrix products are faster."""


def dct2(x: Tensor) -> Tensor:
    """The transform of the last two axes; orthonormal, so that white noise stays white."""
    height, width = int(x.shape[-2]), int(x.shape[-1])
    if max(height, width) <= SHORT:
        return low_dct2(x, height, width)
    kept, others = width // 2 + 1, (width - 1) // 2
    across = torch.cat([x[..., 0::2], x[..., 1::2].flip(-1)], -1)
    reordered = torch.cat([across[..., 0::2, :], across[..., 1::2, :].flip(-2)], -2)
    turned = torch.fft.rfft2(reordered).mul_(_rotation(height, width, x.dtype, x.device))
    below, beside = turned[..., 1:, :], turned[..., 1:, :].flip(-2)  # rows k and height - k
    made, back = torch.empty_like(x), slice(1, others + 1)
    made[..., 0, :kept] = turned[..., 0, :].real
    torch.sub(below.real, beside.imag, out=made[..., 1:, :kept])
    made[..., 0, kept:] = -turned[..., 0, back].imag.flip(-1)
    made[..., 1:, kept:] = (below.imag[..., back] + beside.real[..., back]).neg_().flip(-1)
    return made


def idct2(c: Tensor) -> Tensor:
    """The inverse, which is the transpose, of `dct2`."""
    height, width = int(c.shape[-2]), int(c.shape[-1])
    if max(height, width) <= SHORT:
        return low_idct2(c, height, width)
    kept, others = width // 2 + 1, (width - 1) // 2
    first = c[..., :kept]
    middle = [c[..., kept - 1 : kept]] if width % 2 == 0 else []  # the middle coefficient is its own partner
    second = torch.cat([torch.zeros_like(c[..., :1]), c[..., width - others :].flip(-1), *middle], -1)
    real, imaginary = first.clone(), -second
    real[..., 1:, :] -= second[..., 1:, :].flip(-2)
    imaginary[..., 1:, :] -= first[..., 1:, :].flip(-2)
    turned = torch.complex(real, imaginary).mul_(_rotation(height, width, c.dtype, c.device, True))
    reordered = torch.fft.irfft2(turned, s=(height, width))
    top, left = height - height // 2, width - width // 2
    across, x = torch.empty_like(c), torch.empty_like(c)
    across[..., 0::2, :], across[..., 1::2, :] = reordered[..., :top, :], reordered[..., top:, :].flip(-2)
    x[..., 0::2], x[..., 1::2] = across[..., :left], across[..., left:].flip(-1)
    return x


def low_dct2(x: Tensor, rows: int, columns: int) -> Tensor:
    """The first `rows` x `columns` coefficients of `dct2`, by two thin matrix products."""
    vertical = _matrix(int(x.shape[-2]), x.dtype, x.device)[:rows]
    return vertical @ x @ _matrix(int(x.shape[-1]), x.dtype, x.device)[:columns].mT


def low_idct2(c: Tensor, height: int, width: int) -> Tensor:
    """The image of `height` x `width` pixels whose other coefficients are zero: the transpose of `low_dct2`."""
    vertical = _matrix(height, c.dtype, c.device)[: c.shape[-2]]
    return vertical.mT @ c @ _matrix(width, c.dtype, c.device)[: c.shape[-1]]


@lru_cache(maxsize=16)
def _rotation(height: int, width: int, dtype: torch.dtype, device: torch.device, inverse: bool = False) -> Tensor:
    """Factors [H, W // 2 + 1] of Fourier coefficients that turn them into cosine coefficients, or back."""

    def turns(length: int, count: int) -> Tensor:
        places = torch.arange(count, dtype=torch.float64)
        size = torch.full_like(places, math.sqrt(2 / length))
        size[0] = math.sqrt(1 / length)
        return torch.polar(size, -math.pi * places / (2 * length))

    factors = turns(height, height)[:, None] * turns(width, width // 2 + 1)
    if inverse:
        factors = 1 / factors
    else:
        factors[1:] /= 2  # two of them make a coefficient below the first row
    return factors.to(torch.complex128 if dtype == torch.float64 else torch.complex64).to(device)


@lru_cache(maxsize=64)
def _matrix(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(dct_matrix(length), dtype=dtype, device=device)
