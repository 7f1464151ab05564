"""The kernels that are tried: Gaussians, disks and straight motions of many widths, and what they leave of each frequency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from torch import Tensor

from leader.forensics.blur.periodogram import Array, Plane, mix_neighbours, plane
from leader.forensics.constants import read_constants
from leader.operators.blur import centre_kernel
from leader.operators.kernels import disk_kernel, gaussian_kernel, line_kernel

Family = Literal["none", "gaussian", "disk", "line"]
FAMILIES: tuple[Family, ...] = ("gaussian", "disk", "line")

WIDTHS: dict[Family, tuple[float, float]] = {"gaussian": (0.5, 5.0), "disk": (1.0, 8.0), "line": (3.0, 18.0)}
"""Of the coarse search, in pixels; that of the halved picture reaches twice as far."""
SMALLEST: dict[Family, float] = {"gaussian": 0.9, "disk": 1.6, "line": 3.5}
"""Narrower kernels count as sharp: lenses, sensors and resizing blur as much."""
_CONSTANTS = read_constants("blur.shapes")
FILLED = _CONSTANTS.number("filled")


@dataclass(frozen=True)
class Shape:
    """A kernel. The width of a Gaussian is its standard deviation, of a disk its radius, of a line its length; in pixels.

    angle  of a line, in degrees counter-clockwise from the horizontal, in [0, 180)
    """

    family: Family
    width: float = 0.0
    angle: float = 0.0

    def kernel(self) -> Tensor:
        """Its taps [kh, kw], float64; one tap of 1 where there is no blur."""
        if self.family == "gaussian":
            return gaussian_kernel(self.width)
        if self.family == "disk":
            return disk_kernel(self.width)
        return line_kernel(self.width if self.family == "line" else 1.0, self.angle)

    def scaled(self, factor: float, turn: float = 0.0) -> Shape:
        """As wide times `factor`, turned by so many degrees."""
        return Shape(self.family, float(self.width * factor), float((self.angle + turn) % 180))

    @property
    def angle_step(self) -> float:
        """Degrees after which the dark bands of a line have moved by a good part of their distance."""
        return min(20.0, 100 / self.width)


@dataclass(frozen=True)
class Ridge:
    """A direction of the scene itself: its power falls across it, like that of a motion but without dark bands."""

    length: float
    angle: float


SHARP = Shape("none")


def transfer(shape: Shape, at: Plane) -> Array:
    """|K|^2 [n] at the frequencies of a plane, as tiles see it."""
    if shape.family == "none":
        return np.ones(len(at.f))
    power = transfer_of(shape.kernel(), at)
    if shape.family == "line":  # no real motion is perfectly straight and even
        power = (1 - FILLED) * power + FILLED * ridge_power(Ridge(shape.width, shape.angle), at)
    return power


def transfer_of(kernel: Tensor, at: Plane) -> Array:
    """|K|^2 [n] of taps [kh, kw] at the frequencies of a plane, as tiles see it."""
    taps = centre_kernel(kernel[None, None], at.side, at.side)[0, 0].numpy()
    return mix_neighbours(np.abs(np.fft.rfft2(taps)) ** 2)[at.use]


def ridge_power(ridge: Ridge, at: Plane) -> Array:
    """What a ridge multiplies a scene's power by, [n]: the mean decay of a line of that length."""
    along = at.f * np.cos(at.theta + math.radians(ridge.angle))  # rows count downwards, angles upwards
    power: Array = 1 / (1 + 2 * (math.pi * ridge.length * along) ** 2)
    return power


def softness(std: float, at: Plane) -> Array:
    """|K|^2 [n] of a Gaussian: what is left where a motion is seen through a soft lens."""
    power: Array = np.exp(-((2 * math.pi * std * at.f) ** 2))
    return power


@lru_cache(maxsize=2)
def coarse(side: int) -> tuple[tuple[Shape, ...], Array]:
    """A grid of shapes, the first without blur, and their transfers [M, n]."""
    shapes = [SHARP]
    shapes += [Shape("gaussian", width) for width in np.geomspace(*WIDTHS["gaussian"], 16)]
    shapes += [Shape("disk", width) for width in np.geomspace(*WIDTHS["disk"], 15)]
    for width in np.geomspace(*WIDTHS["line"], 11):
        count = math.ceil(180 / Shape("line", width).angle_step)
        shapes += [Shape("line", width, 180 * number / count) for number in range(count)]
    at = plane(side)
    return tuple(shapes), np.stack([transfer(shape, at) for shape in shapes])


@lru_cache(maxsize=4)
def ridges(side: int) -> tuple[tuple[Ridge, ...], Array]:
    """The directions that are tried, and their powers [M, n]."""
    found = tuple(Ridge(length, angle) for length in (4.0, 8.0, 16.0, 32.0) for angle in range(0, 180, 15))
    return found, np.stack([ridge_power(ridge, plane(side)) for ridge in found])
