"""The orthonormal discrete cosine transform (type II) of images.

Short axes by a matrix product, long ones by a real FFT. Makhoul's reordering: the even samples, then the odd ones backwards,
have a Fourier transform whose rotated real and imaginary parts are the cosine coefficients.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from leader.transforms import dct_matrix

SHORT = 160
"""Up to so many samples a matrix product is faster."""


def dct2(x: Tensor) -> Tensor:
    """The transform of the last two axes; orthonormal, so that white noise stays white."""
    return _transform(_transform(x, -1), -2)


def idct2(c: Tensor) -> Tensor:
    """The inverse, which is the transpose, of `dct2`."""
    return _invert(_invert(c, -2), -1)


def _transform(x: Tensor, axis: int) -> Tensor:
    length = x.shape[axis]
    if length <= SHORT:
        matrix = _matrix(length, x.dtype, x.device)
        return x @ matrix.mT if axis == -1 else matrix @ x
    even, odd = _every_second(x, axis, 0), _every_second(x, axis, 1)
    turned = torch.fft.rfft(torch.cat([even, odd.flip(axis)], axis), dim=axis) * _rotation(length, axis, x.dtype, x.device)
    beside = turned.imag.narrow(axis, 1, (length - 1) // 2).flip(axis)
    return torch.cat([turned.real, -beside], axis)


def _invert(c: Tensor, axis: int) -> Tensor:
    length = c.shape[axis]
    if length <= SHORT:
        matrix = _matrix(length, c.dtype, c.device)
        return c @ matrix if axis == -1 else matrix.mT @ c
    half = length // 2
    real, beside = c.narrow(axis, 0, half + 1), c.narrow(axis, half + 1, (length - 1) // 2).flip(axis)
    edge = torch.zeros_like(c.narrow(axis, 0, 1))
    tail = [-c.narrow(axis, half, 1)] if length % 2 == 0 else []  # the middle coefficient is its own partner
    imaginary = torch.cat([edge, -beside, *tail], axis)
    turned = torch.complex(real, imaginary) * _rotation(length, axis, c.dtype, c.device, True)
    v = torch.fft.irfft(turned, n=length, dim=axis)
    x = torch.empty_like(v)
    _every_second(x, axis, 0).copy_(v.narrow(axis, 0, length - half))
    _every_second(x, axis, 1).copy_(v.narrow(axis, length - half, half).flip(axis))
    return x


def _every_second(x: Tensor, axis: int, first: int) -> Tensor:
    """A view of samples first, first + 2, ... along an axis."""
    return x[..., first::2] if axis == -1 else x[..., first::2, :]


@lru_cache(maxsize=64)
def _rotation(length: int, axis: int, dtype: torch.dtype, device: torch.device, inverse: bool = False) -> Tensor:
    """Factors of the Fourier coefficients 0 ... length // 2 that turn them into cosine coefficients, or back."""
    places = torch.arange(length // 2 + 1, dtype=torch.float64)
    size = torch.full_like(places, math.sqrt(2 / length))
    size[0] = math.sqrt(1 / length)
    factors = torch.polar(size, -math.pi * places / (2 * length))
    if inverse:
        factors = 1 / factors
    complex_dtype = torch.complex128 if dtype == torch.float64 else torch.complex64
    factors = factors.to(complex_dtype).to(device)
    return factors if axis == -1 else factors[:, None]


@lru_cache(maxsize=64)
def _matrix(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(dct_matrix(length), dtype=dtype, device=device)
