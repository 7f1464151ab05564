"""Operators of every kind for any shape, and the dense matrix of a small one."""

from collections.abc import Callable

import torch
from torch import Tensor

from leader.operators import (
    AveragePoolSR,
    BicubicSR,
    Blur,
    Colourisation,
    Denoising,
    Inpainting,
    LinearOperator,
    SeparableBlur,
    SeparableOperator,
    SpectralOperator,
    WalshHadamard,
    WeightedPixels,
    WhitenedBlur,
    gaussian_taps,
    paper_gaussian_taps,
    random_mask,
)

Shape = tuple[int, int, int]


def _randn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _blur(shape: Shape, seed: int) -> Blur:
    height, width = 1 + seed % 6, 1 + seed % 5
    return Blur(shape, _randn(seed, height, width).abs())


def symmetric_power(seed: int, *shape: int) -> Tensor:
    """A random noise power [K, H, W] between 0.1 and 10, the same at f and -f."""
    half = _randn(seed, *shape).clamp(-2.3, 2.3)
    return torch.exp((half + half.flip((1, 2)).roll((1, 1), (1, 2))) / 2)


def _whitened(shape: Shape, seed: int) -> WhitenedBlur:
    axes = shape[0] if seed % 2 else 1
    return WhitenedBlur(shape, _blur(shape, seed).kernel[0, 0], symmetric_power(seed, axes, *shape[1:]))


def _hadamard(shape: Shape, seed: int) -> WalshHadamard:
    height, width = (1 << (n.bit_length() - 1) for n in shape[1:])
    order = ("random", "sequency", "published")[seed % 3]
    return WalshHadamard((shape[0], height, width), ratio=0.3, seed=seed, order=order)


BUILDERS: dict[str, Callable[[Shape, int], SpectralOperator]] = {
    "denoising": lambda shape, seed: Denoising(shape),
    "inpainting": lambda shape, seed: Inpainting(shape, random_mask(*shape[1:], 0.4, seed)),
    "colourisation": lambda shape, seed: Colourisation((3, *shape[1:])),
    "bicubic": lambda shape, seed: BicubicSR(shape, 1 + seed % min(5, *shape[1:])),
    "average": lambda shape, seed: AveragePoolSR(shape, 1 + seed % min(5, *shape[1:])),
    "zero blur": lambda shape, seed: SeparableBlur(shape, paper_gaussian_taps()),
    "symmetric blur": lambda shape, seed: SeparableBlur(
        shape, gaussian_taps(1.0, 4 + seed % 3), gaussian_taps(2.0, 7), boundary="symmetric"
    ),
    "tall and wide": lambda shape, seed: SeparableOperator(
        shape, _randn(seed, shape[1] + 2, shape[1]), _randn(seed + 1, max(1, shape[2] - 2), shape[2]), 3e-2
    ),
    "circular blur": _blur,
    "weighted pixels": lambda shape, seed: WeightedPixels(shape, 0.1 + _randn(seed, *shape).abs()),
    "whitened blur": _whitened,
    "whitened colours": lambda shape, seed: _whitened(shape, 2 * (seed // 2) + 1),
    "hadamard": _hadamard,
}


def images(operator: LinearOperator, batch: int = 2, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return _randn(seed, batch, *operator.image_shape).to(dtype)


def measurements(operator: LinearOperator, batch: int = 2, seed: int = 1, dtype: torch.dtype = torch.float32) -> Tensor:
    return _randn(seed, batch, *operator.measurement_shape).to(dtype)


def dense(operator: LinearOperator) -> Tensor:
    """The matrix [m, C H W] of an operator, column by column, in float64."""
    pixels = operator.image_shape[0] * operator.image_shape[1] * operator.image_shape[2]
    basis = torch.eye(pixels, dtype=torch.float64).reshape(pixels, *operator.image_shape)
    return operator.A(basis).flatten(1).mT


def relative(found: Tensor, expected: Tensor) -> float:
    """|found - expected| / |expected|."""
    return float((found - expected).norm() / expected.norm().clamp_min(1e-30))
