"""Kernels of simple shapes, antialiased: the disk of a lens out of focus, the straight line of a moving camera or object.

Both change continuously with their width, so a width can be searched for and have an uncertainty.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from leader.errors import LeaderError

COLUMNS = 64
"""Columns per pixel at which the height of the disk is sampled; its area is then exact to about 1e-4 of a pixel."""


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
