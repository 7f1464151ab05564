"""Compressed sensing: a few coefficients of the orthonormal Walsh-Hadamard transform of each channel.

The transform of the row-major pixels in natural (Sylvester) order is the Kronecker product of those of the
columns and the rows, so coefficient i = row * W + column belongs to one vertical and one horizontal
pattern. All singular values are 1.
"""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor

from leader.errors import LeaderError, unknown_name
from leader.operators.base import SpectralOperator
from leader.operators.caches import CastCache

ORDERS = ("random", "sequency", "published")
# One product with a 16 x 16 matrix replaces four butterfly passes through memory.
_RADIX_BITS = 4


class WalshHadamard(SpectralOperator):
    """y [B, C, m]: m = round(ratio * H * W) coefficients, the same for all channels and images, sorted.

    ratio          part of the coefficients that is measured, in (0, 1]
    seed           of the random sets; drawn on the CPU, so equal on every device
    order          "random"; "sequency": coarsest patterns first; "published": random, constant not forced
    keep_constant  whether the random set always includes the constant pattern (the mean of the image)
    indices        the measured coefficients themselves; the other options are then ignored

    >>> WalshHadamard((3, 8, 8), 0.25).measurement_shape
    (3, 16)
    """

    task = "cs"

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        ratio: float = 0.25,
        seed: int = 0,
        order: str = "random",
        keep_constant: bool = True,
        indices: Tensor | None = None,
    ) -> None:
        _, height, width = image_shape
        if any(n < 1 or n & (n - 1) for n in (height, width)):
            raise LeaderError(
                f"Walsh-Hadamard sensing needs sides that are powers of two; found {height} x {width}: crop or resize first."
            )
        pixels = height * width
        if indices is None:
            indices = measured_indices(height, width, ratio, seed, order, keep_constant)
        self.indices = _check_indices(indices, pixels)
        spectrum = torch.zeros(pixels, dtype=torch.float64)
        spectrum[self.indices] = 1
        super().__init__(image_shape, spectrum.reshape(1, 1, height, width))
        self._chosen = CastCache(self.spectrum)

    @cached_property
    def measured(self) -> WalshCoefficients:
        return WalshCoefficients(self)

    def to(self, x: Tensor) -> Tensor:
        self.check_image(x)
        return walsh_hadamard(x.flatten(2)).reshape(x.shape)

    def back(self, c: Tensor) -> Tensor:
        return walsh_hadamard(c.flatten(2)).reshape(c.shape)

    def data(self, y: Tensor) -> Tensor:
        pixels = self.image_shape[1] * self.image_shape[2]
        where = self.indices.to(y.device).expand(y.shape)
        w = torch.zeros(*y.shape[:2], pixels, dtype=y.dtype, device=y.device)
        return w.scatter_(2, where, y).reshape(-1, *self.image_shape)

    def measure(self, w: Tensor) -> Tensor:
        return w.flatten(2).gather(2, self.indices.to(w.device).expand(*w.shape[:2], -1))

    def A(self, x: Tensor) -> Tensor:
        return self.measure(self.to(x))

    def AT(self, y: Tensor) -> Tensor:
        return self.back(self.data(y))

    def gram(self, x: Tensor) -> Tensor:
        return self.back(self.to(x).mul_(self._chosen.like(x)))

    def pinv(self, y: Tensor) -> Tensor:
        return self.AT(y)

    def unit_range(self) -> tuple[Tensor, Tensor]:
        # Weights are +-1/sqrt(pixels): all positive in the constant pattern, half of them in the others.
        largest = math.sqrt(self.image_shape[1] * self.image_shape[2])
        constant = self.indices == 0
        low = torch.where(constant, 0.0, -largest / 2).to(torch.float64)
        return low[None, None], torch.where(constant, largest, largest / 2).to(torch.float64)[None, None]


class WalshCoefficients:
    """The measured coefficients, c [B, C, m]: they are the measurement itself."""

    def __init__(self, operator: WalshHadamard) -> None:
        self.to, self.back = operator.A, operator.AT
        self.s = torch.ones(1, 1, 1, dtype=torch.float64)

    def data(self, y: Tensor) -> Tensor:
        return y


def walsh_hadamard(x: Tensor) -> Tensor:
    """The orthonormal transform of the last axis, natural order, length a power of two; its own inverse."""
    length = x.shape[-1]
    bits = length.bit_length() - 1
    flat = x.reshape(-1, length)
    while bits > 0:
        step = min(_RADIX_BITS, bits)
        # Each pass transforms the leading digit of the index and moves it to the end; all return in order.
        flat = (flat.reshape(-1, 1 << step, length >> step).mT @ _HADAMARD[step].like(x)).flatten(1)
        bits -= step
    return flat.reshape(x.shape)


def measured_indices(
    height: int, width: int, ratio: float, seed: int = 0, order: str = "random", keep_constant: bool = True
) -> Tensor:
    """The sorted indices (int64) of the round(ratio * H * W) measured coefficients."""
    if order not in ORDERS:
        raise unknown_name("order of coefficients", order, ORDERS)
    if not 0 < ratio <= 1:
        raise LeaderError(f"The measured part of the coefficients must lie in (0, 1]; found {ratio}.")
    pixels = height * width
    count = max(1, round(ratio * pixels))
    if order == "sequency":
        relative = sequency(height)[:, None] / height + sequency(width) / width
        return relative.flatten().argsort(stable=True)[:count].sort().values
    generator = torch.Generator().manual_seed(seed)
    if order == "random" and keep_constant:
        others = 1 + torch.randperm(pixels - 1, generator=generator)[: count - 1]
        return torch.cat([torch.zeros(1, dtype=torch.int64), others]).sort().values
    return torch.randperm(pixels, generator=generator)[:count].sort().values


def sequency(length: int) -> Tensor:
    """The number of sign changes of each row of the natural-order matrix, int64 [length]."""
    bits = length.bit_length() - 1
    natural = torch.arange(length)
    reverse = torch.zeros_like(natural)
    for bit in range(bits):
        reverse |= ((natural >> bit) & 1) << (bits - 1 - bit)
    # Rows in the order of their sign changes are a Gray code of the bit-reversed index: undo it.
    count = reverse
    shift = 1
    while shift < length:
        count = count ^ (count >> shift)
        shift *= 2
    return count


def _check_indices(indices: Tensor, pixels: int) -> Tensor:
    values = torch.as_tensor(indices).cpu()
    if values.ndim != 1 or values.numel() == 0 or values.dtype.is_floating_point:
        raise LeaderError(f"The measured coefficients must be a list of integers; found shape {list(values.shape)}.")
    values = values.to(torch.int64)
    if int(values.min()) < 0 or int(values.max()) >= pixels or len(set(values.tolist())) != values.numel():
        raise LeaderError(f"The measured coefficients must be different indices from 0 to {pixels - 1}.")
    return values


def _small_hadamard(bits: int) -> Tensor:
    matrix = torch.ones(1, 1, dtype=torch.float64)
    for _ in range(bits):
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix / 2 ** (bits / 2)


_HADAMARD = {bits: CastCache(_small_hadamard(bits)) for bits in range(1, _RADIX_BITS + 1)}
