"""Blur kernels: Gaussian, disk, motion, and user-defined. All are float64 tensors [kh, kw] that sum to 1."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.kernels.motion import motion_kernel as motion_kernel
from leader.operators.kernels.shapes import disk_kernel as disk_kernel
from leader.operators.kernels.shapes import line_kernel as line_kernel


def gaussian_taps(std: float, size: int | None = None) -> Tensor:
    """exp(-i^2 / (2 std^2)) at pixel centres, float64 [size]; by default up to 4 standard deviations.

    >>> gaussian_taps(1.0).shape
    torch.Size([9])
    """
    if not (math.isfinite(std) and std > 0):
        raise LeaderError(f"The standard deviation of a Gaussian kernel must be a positive number; found {std}.")
    if size is None:
        size = 2 * int(4 * std + 0.5) + 1
    if size < 1:
        raise LeaderError(f"A kernel needs at least one tap; found size {size}.")
    position = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    taps = torch.exp(-0.5 * (position / std) ** 2)
    return taps / taps.sum()


def gaussian_kernel(std: float, size: int | None = None) -> Tensor:
    """The Gaussian kernel [size, size] of standard deviation `std` pixels.

    >>> gaussian_kernel(1.0).shape
    torch.Size([9, 9])
    """
    taps = gaussian_taps(std, size)
    return torch.outer(taps, taps)


def paper_gaussian_taps() -> Tensor:
    """The five taps of standard deviation 10 (nearly a box) of the papers' Gaussian deblurring.

    >>> paper_gaussian_taps().shape
    torch.Size([5])
    """
    return gaussian_taps(10.0, 5)


def load_kernel(array: Tensor | ArrayLike) -> Tensor:
    """A kernel [kh, kw], checked and made to sum to 1. Negative taps are allowed, a sum <= 0 is not.

    >>> load_kernel([[1, 2, 1]])
    tensor([[0.2500, 0.5000, 0.2500]], dtype=torch.float64)
    """
    kernel = torch.as_tensor(array if isinstance(array, Tensor) else np.asarray(array, dtype=np.float64))
    kernel = kernel.detach().to("cpu", torch.float64)
    if kernel.ndim != 2 or kernel.numel() == 0:
        raise LeaderError(f"A blur kernel must be a table of numbers [height, width]; found {list(kernel.shape)}.")
    if not bool(torch.isfinite(kernel).all()):
        raise LeaderError("The blur kernel contains NaN or infinite values; remove them first.")
    total = float(kernel.sum())
    if total <= 1e-12 * float(kernel.abs().sum()):
        raise LeaderError(f"The blur kernel sums to {total:g}; a kernel needs a positive sum.")
    return kernel / total
