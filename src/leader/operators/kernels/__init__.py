"""Blur kernels: Gaussian, disk, motion, and user-defined. All are float64 tensors [kh, kw] that sum to 1.

Disks and straight lines are antialiased and change continuously with their width, so a width can be searched for and have an
uncertainty.
"""

import math

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from leader.errors import LeaderError
from leader.operators.kernels.motion import motion_kernel as motion_kernel

COLUMNS = 64
"""Columns per pixel at which the height of the disk is sampled; its area is then exact to about 1e-4 of a pixel."""


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


def disk_kernel(radius: float) -> Tensor:
    """The disk of `radius` pixels, float64 [size, size], sum 1: every tap is the share of its pixel that the disk covers.

    >>> disk_kernel(1.5).sum()
    tensor(1., dtype=torch.float64)
    """
    if not (math.isfinite(radius) and radius > 0):
        raise LeaderError(f"The radius of a disk must be a positive number; found {radius}.")
    reach = max(0, math.ceil(radius - 0.5))
    centre = np.arange(-reach, reach + 1.0)
    x = centre[:, None] + (np.arange(COLUMNS) + 0.5) / COLUMNS - 0.5
    height = np.sqrt(np.maximum(radius**2 - x**2, 0))
    low = np.maximum(centre[:, None, None] - 0.5, -height)
    high = np.minimum(centre[:, None, None] + 0.5, height)
    taps = np.maximum(high - low, 0).mean(2)
    taps = (taps + taps.T) / 2
    return torch.from_numpy(taps / taps.sum())


def line_kernel(length: float, angle: float = 0.0) -> Tensor:
    """A straight motion over `length` pixels, float64 [kh, kw], sum 1: every tap is the length of the path inside its pixel.

    angle  in degrees, counter-clockwise from the horizontal; 180 degrees more are the same motion

    >>> line_kernel(5, 30).shape
    torch.Size([3, 5])
    """
    if not (math.isfinite(length) and length > 0 and math.isfinite(angle)):
        raise LeaderError(f"A straight motion needs a positive length and an angle; found {length} and {angle}.")
    across, up = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    cuts = [np.array([-length / 2, length / 2])]
    for direction in (across, up):
        if abs(direction) > 1e-9:  # where the path crosses from one row or column into the next
            edges = np.arange(0.5, length / 2 * abs(direction)) / abs(direction)
            cuts += [edges, -edges]
    places = np.unique(np.concatenate(cuts))
    middle, share = (places[1:] + places[:-1]) / 2, np.diff(places)
    columns, rows = np.rint(middle * across).astype(int), np.rint(-middle * up).astype(int)
    height, width = int(np.abs(rows).max()), int(np.abs(columns).max())
    taps = np.zeros((2 * height + 1, 2 * width + 1))
    np.add.at(taps, (rows + height, columns + width), share)
    taps = (taps + taps[::-1, ::-1]) / 2  # a middle on the edge of two pixels was rounded to one of them
    return torch.from_numpy(taps / taps.sum())
