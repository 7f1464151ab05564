"""The orthonormal discrete cosine transform (type II) of images.

Short sides by matrix products, long ones by one real FFT of both axes. Makhoul's reordering: the even samples, then the odd
ones backwards, have a Fourier transform whose rotated real and imaginary parts are the cosine coefficients. `to_waves` leaves
them where they arise, for those who do not need them in order.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor

from leader.operators.products import multiply_last, multiply_last_to_front
from leader.transforms import dct_matrix

SHORT = 160
"""Where no side has more samples matrix products are faster."""
MANY = 250
"""Where a matrix product takes more multiplications a pixel, on larger sides, an FFT is faster."""


def dct2(x: Tensor) -> Tensor:
    """The transform of the last two axes; orthonormal, so that white noise stays white."""
    height, width = int(x.shape[-2]), int(x.shape[-1])
    if max(height, width) <= SHORT:
        return low_dct2(x, height, width)
    kept, others = width // 2 + 1, (width - 1) // 2
    waves, made = to_waves(x), torch.empty_like(x)
    made[..., :kept] = waves[..., 0]
    made[..., kept:] = waves[..., 1 : others + 1, 1].flip(-1).neg_()
    if width % 2 == 0:
        made[..., kept - 1] *= math.sqrt(2)
    return made


def idct2(c: Tensor) -> Tensor:
    """The inverse, which is the transpose, of `dct2`."""
    height, width = int(c.shape[-2]), int(c.shape[-1])
    if max(height, width) <= SHORT:
        return low_idct2(c, height, width)
    first, second = pair_up(c)
    if width % 2 == 0:
        first[..., -1] /= math.sqrt(2)
        second[..., -1] /= math.sqrt(2)
    return from_waves(torch.stack([first, second.neg_()], -1), width)


def pair_up(c: Tensor) -> tuple[Tensor, Tensor]:
    """Columns l = 0 to W // 2 of something by frequency [..., H, W], and columns W - l: 0 for the first, which has none."""
    width = int(c.shape[-1])
    kept = width // 2 + 1
    return c[..., :kept].clone(), torch.cat([torch.zeros_like(c[..., :1]), c[..., width - kept + 1 :].flip(-1)], -1)


def to_waves(x: Tensor, folded: bool = False) -> Tensor:
    """The transform of the last two axes in the order of the FFT: [..., H, W] -> [..., H, W // 2 + 1, 2].

    At [k, l] there are the coefficient of row k and column l, and minus that of column W - l (`pair_up`). The middle column of
    an even width is its own partner: both are divided by sqrt(2), so that inner products stay what they are.

    folded  whether the pixels come in the order of `fold`, which saves a pass
    """
    height, width = int(x.shape[-2]), int(x.shape[-1])
    turned = torch.fft.rfft2(x if folded else fold(x)).mul_(_rotation(height, width, x.dtype, x.device))
    below = turned[..., 1:, :]
    below.add_(below.flip(-2), alpha=1j)  # rows k and H - k
    return torch.view_as_real(turned)


def from_waves(waves: Tensor, width: int, folded: bool = False) -> Tensor:
    """The inverse, which is the transpose, of `to_waves`; overwrites `waves`."""
    turned = torch.view_as_complex(waves)
    height = int(turned.shape[-2])
    below = turned[..., 1:, :]
    below.sub_(below.flip(-2), alpha=1j)
    turned.mul_(_rotation(height, width, waves.dtype, waves.device, True))
    x: Tensor = torch.fft.irfft2(turned, s=(height, width))
    return x if folded else unfold(x)


def fold(x: Tensor) -> Tensor:
    """Pixels [..., H, W] in the order in which they are transformed."""
    return _reorder(x, 0)


def unfold(x: Tensor) -> Tensor:
    """The inverse of `fold`."""
    return _reorder(x, 1)


def _reorder(x: Tensor, way: int) -> Tensor:
    order = _order(int(x.shape[-2]), int(x.shape[-1]), x.device)[way]
    return x.reshape(-1, len(order)).index_select(1, order).reshape(x.shape)  # fastest with two axes


def low_dct2(x: Tensor, rows: int, columns: int) -> Tensor:
    """The first `rows` x `columns` coefficients of `dct2`, by two thin matrix products, or cut out of all of them."""
    thin = thin_dct2(x.flatten(0, -3), rows, columns)
    return thin.permute(1, 2, 0).reshape(*x.shape[:-2], rows, columns)


def low_idct2(c: Tensor, height: int, width: int) -> Tensor:
    """The image of `height` x `width` pixels whose other coefficients are zero: the transpose of `low_dct2`."""
    thin = c.flatten(0, -3).permute(2, 0, 1).contiguous()
    return thin_idct2(thin, height, width).view(*c.shape[:-2], height, width)


def thin_dct2(x: Tensor, rows: int, columns: int) -> Tensor:
    """`low_dct2` of images [N, H, W] in the order in which its products leave it, [columns, N, rows]."""
    height, width = int(x.shape[-2]), int(x.shape[-1])
    if _is_many(rows, columns, height, width):
        return to_waves(x)[..., :rows, :columns, 0].permute(2, 0, 1).contiguous()
    across = multiply_last_to_front(x, _matrix(width, x.dtype, x.device)[:columns])
    return multiply_last(across, _matrix(height, x.dtype, x.device)[:rows])


def thin_idct2(c: Tensor, height: int, width: int) -> Tensor:
    """The transpose of `thin_dct2`: [columns, N, rows] -> [N, H, W]."""
    columns, count, rows = c.shape
    if _is_many(rows, columns, height, width):
        waves = c.new_zeros(count, height, width // 2 + 1, 2)
        waves[..., :rows, :columns, 0] = c.permute(1, 2, 0)
        return from_waves(waves, width)
    down = multiply_last(c, _transposed(height, rows, c.dtype, c.device))
    upright = down.view(columns, -1).mT.contiguous()  # two axes: torch copies more of them several times as slowly
    return multiply_last(upright, _transposed(width, columns, c.dtype, c.device)).view(count, height, width)


def _is_many(rows: int, columns: int, height: int, width: int) -> bool:
    """Whether so few coefficients, in the left half, are still so many that an FFT of all of them is faster."""
    return max(height, width) > SHORT and 2 * columns <= width + width % 2 and rows * (height + columns) > MANY * height


@lru_cache(maxsize=16)
def _rotation(height: int, width: int, dtype: torch.dtype, device: torch.device, inverse: bool = False) -> Tensor:
    """Factors [H, W // 2 + 1] of Fourier coefficients that turn them into cosine coefficients, or back."""

    def turns(length: int, count: int) -> Tensor:
        places = torch.arange(count, dtype=torch.float64)
        size = torch.full_like(places, math.sqrt(2 / length))
        size[0] = math.sqrt(1 / length)
        return torch.polar(size, -math.pi * places / (2 * length))

    factors = turns(height, height)[:, None] * turns(width, width // 2 + 1)
    if width % 2 == 0:
        factors[:, -1] /= math.sqrt(2)
    if inverse:
        factors = 1 / factors
    else:
        factors[1:] /= 2  # two of them make a coefficient below the first row
    return factors.to(torch.complex128 if dtype == torch.float64 else torch.complex64).to(device)


@lru_cache(maxsize=16)
def _order(height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where the pixels, row by row, come from: even ones before odd ones backwards, along both axes; and back again."""

    def along(length: int) -> Tensor:
        return torch.cat([torch.arange(0, length, 2), torch.arange(1, length, 2).flip(0)])

    order = (along(height)[:, None] * width + along(width)).flatten()
    return order.to(device), order.argsort().to(device)


@lru_cache(maxsize=64)
def _matrix(length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(dct_matrix(length), dtype=dtype, device=device)


@lru_cache(maxsize=64)
def _transposed(length: int, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The first `count` rows of the matrix as columns [length, count], in one piece."""
    return _matrix(length, dtype, device)[:count].mT.contiguous()
