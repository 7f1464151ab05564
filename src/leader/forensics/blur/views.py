"""A picture as the evidence sees it: its power at the frequencies of tiles, what compression left there, its likely noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.forensics.blur.evidence import SCORING_ROUNDS, Fits, fit
from leader.forensics.blur.periodogram import Array, Flags, Plane, describe_quantisation, periodogram, plane
from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import LUMA_GAIN
from leader.forensics.noise.estimate import NoiseEstimate

_CONSTANTS = read_constants("blur.views")
COARSE_TILE, FINE_TILE, LONGEST_SIDE = _CONSTANTS.counts("coarse_tile", "fine_tile", "longest_side")
FEWEST_FREQUENCIES = _CONSTANTS.count("fewest_frequencies")


@dataclass(frozen=True)
class View:
    """A picture's power at the frequencies [n] of a plane.

    weight  [n], 1 where compression left something of the picture, 0 elsewhere
    floor   [n], the power that rounding added
    noise   a guess of the power of its noise
    """

    at: Plane
    power: Array
    weight: Array
    floor: Array
    noise: float

    def fits(self, transfers: NDArray[np.floating], rounds: int = SCORING_ROUNDS) -> Fits:
        return fit(self.power, transfers, self.at.basis, self.noise, self.weight, self.floor, rounds)


def view(luma: Array, side: int, noise: NoiseEstimate, known: Flags | None = None, shrunk: int = 1) -> View | None:
    """luma [H, W] in [0, 1], seen by tiles of `side` after averaging over `shrunk` pixels along each side; None if no
    tile is completely known, or compression has left next to nothing.
    """
    small = _shrunk(luma, shrunk)
    seen = None if known is None else _shrunk(known.astype(np.float64), shrunk) == 1
    power = periodogram(small, side, seen)
    if power is None:
        return None
    at = plane(side)
    weight, floor = np.ones(len(at.f)), np.full(len(at.f), (LUMA_GAIN * noise.rounding / shrunk) ** 2)
    if noise.history is not None:
        weight, added = describe_quantisation(luma, noise.history, at, shrunk)
        floor = added + floor
        if weight.sum() < FEWEST_FREQUENCIES:
            return None
    white = (LUMA_GAIN * max(noise.white, noise.rounding) / shrunk) ** 2
    return View(at, power[at.use], weight, floor, white)


def middle(shape: tuple[int, ...], unit: int = 8) -> tuple[slice, slice]:
    """At most LONGEST_SIDE rows and columns of a picture, cut where blocks may begin."""
    starts = [max(0, (length - LONGEST_SIDE) // 2 // unit * unit) for length in shape[:2]]
    return slice(starts[0], starts[0] + LONGEST_SIDE), slice(starts[1], starts[1] + LONGEST_SIDE)


def _shrunk(values: Array, by: int) -> Array:
    if by == 1:
        return values
    height, width = values.shape[0] // by, values.shape[1] // by
    means: Array = values[: height * by, : width * by].reshape(height, by, width, by).mean(axis=(1, 3))
    return means
