"""The part of an SVD that methods use: the measured components of an image.

A function of the singular values that has the value f(0) where nothing is measured acts on an image x as

    f(0) x + V (f(s) - f(0)) V^T x

with V the measured components only. Super-resolution by four measures a sixteenth of all components, so this costs a sixth of a
transform to all of them and back.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from leader.operators.caches import CastCache


class Components(Protocol):
    """Components V of images, among them all that are measured; their coordinates c may have any shape with leading B."""

    @property
    def s(self) -> Tensor:
        """Their singular values, float64, broadcastable to c; zero where nothing is measured."""

    def to(self, x: Tensor) -> Tensor:
        """V^T x of images [B, C, H, W]."""

    def back(self, c: Tensor) -> Tensor:
        """V c: the images that have these components and no others."""

    def data(self, y: Tensor) -> Tensor:
        """U^T y in the shape of c."""


class Columns:
    """Orthonormal columns V [n, r] along one axis of an image."""

    def __init__(self, matrix: Tensor) -> None:
        self._matrix = CastCache(matrix)

    def to(self, x: Tensor, axis: int) -> Tensor:
        """V^T along an axis, -2 or -1, of n pixels."""
        return _multiply_along(axis, self._matrix.like(x).mT, x)

    def back(self, c: Tensor, axis: int) -> Tensor:
        """V along an axis of r coordinates."""
        return _multiply_along(axis, self._matrix.like(c), c)


class MirroredColumns(Columns):
    """Columns that are each even or odd under reversal: sums and differences of the two halves need half of the products.

    even, odd  the first halves [n / 2, r] of the columns of either kind; coordinates of even ones come first
    """

    def __init__(self, even: Tensor, odd: Tensor) -> None:
        self._even, self._odd = CastCache(even), CastCache(odd)

    def to(self, x: Tensor, axis: int) -> Tensor:
        half = x.shape[axis] // 2
        first, second = x.narrow(axis, 0, half), x.narrow(axis, half, half).flip(axis)
        even = _multiply_along(axis, self._even.like(x).mT, first + second)
        return torch.cat([even, _multiply_along(axis, self._odd.like(x).mT, first - second)], axis)

    def back(self, c: Tensor, axis: int) -> Tensor:
        matrices = self._even.like(c), self._odd.like(c)
        parts = torch.split(c, [matrix.shape[1] for matrix in matrices], axis)
        even, odd = (_multiply_along(axis, matrix, part) for matrix, part in zip(matrices, parts, strict=True))
        return torch.cat([even + odd, (even - odd).flip(axis)], axis)


def _multiply_along(axis: int, matrix: Tensor, x: Tensor) -> Tensor:
    return matrix @ x if axis == -2 else x @ matrix.mT


@dataclass(frozen=True)
class MeasuredAxis:
    """The measured part of a matrix B [m, n] along one axis: U^T B = diag(values) V^T, values [r] above the cut, float64."""

    values: Tensor
    left: CastCache
    right: Columns


def measured_axis(matrix: Tensor, cut: float) -> MeasuredAxis:
    """The part of the SVD of a matrix, float64 [m, n], whose values lie above the cut."""
    size = matrix.shape[1]
    if size % 2 or not torch.equal(matrix, matrix.flip(0, 1)):
        left, values, right = _decompose_above(matrix, cut)
        return MeasuredAxis(values, CastCache(left), Columns(right))
    # A matrix that is symmetric under reversal maps even vectors to even ones, and odd to odd.
    first, second = matrix[:, : size // 2], matrix[:, size // 2 :].flip(1)
    even, odd = (_decompose_above(part / 2**0.5, cut) for part in (first + second, first - second))
    left, values = (torch.cat([one, other], -1) for one, other in zip(even[:2], odd[:2], strict=True))
    return MeasuredAxis(values, CastCache(left), MirroredColumns(even[2] / 2**0.5, odd[2] / 2**0.5))


def _decompose_above(matrix: Tensor, cut: float) -> tuple[Tensor, Tensor, Tensor]:
    """(U, values, V) of the values above the cut."""
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    count = int((values > cut).sum())
    return left[:, :count].contiguous(), values[:count], right[:count].mT.contiguous()


class SeparableComponents:
    """Products of the measured components along columns and along rows; c [B, C, r1, r2]."""

    def __init__(self, vertical: MeasuredAxis, horizontal: MeasuredAxis) -> None:
        self._vertical, self._horizontal = vertical, horizontal
        self.s = torch.outer(vertical.values, horizontal.values)[None, None]

    def to(self, x: Tensor) -> Tensor:
        return self._horizontal.right.to(self._vertical.right.to(x, -2), -1)

    def back(self, c: Tensor) -> Tensor:
        return self._vertical.right.back(self._horizontal.right.back(c, -1), -2)

    def data(self, y: Tensor) -> Tensor:
        return self._vertical.left.like(y).mT @ y @ self._horizontal.left.like(y)
