"""Chroma reduced to its samples: decoders enlarge it, most of them (libjpeg's "fancy upsampling") with weights 3/4 and 1/4.

    pixel 2 i     = (3 s[i] + s[i - 1]) / 4        the first pixel and the last one of a file: s[0], s[n - 1]
    pixel 2 i + 1 = (3 s[i] + s[i + 1]) / 4

along each axis by which chroma was halved. The samples s are found by least squares, axis by axis: normal equations with three
diagonals. A picture that begins or ends within a unit leaves samples undetermined; weak springs between neighbours fix those.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array

_CONSTANTS = read_constants("jpeg.chroma")
SPRING = _CONSTANTS.number("spring")


@dataclass(frozen=True)
class Reach:
    """How an axis of a picture lies in whole units of blocks.

    length   pixels of the picture
    before   pixels of the frame before it
    samples  samples of chroma in the frame
    factor   pixels for one of them: 1, 2 or 4
    ends     whether the picture ends where its file does, so that there is no sample beyond
    """

    length: int
    before: int
    samples: int
    factor: int
    ends: bool

    @property
    def frame(self) -> int:
        """Pixels of the frame."""
        return self.samples * self.factor

    @property
    def after(self) -> int:
        """Pixels of the frame behind the picture."""
        return self.frame - self.before - self.length


def reduce_chroma(plane: Array, vertical: Reach, horizontal: Reach, smooth: bool = True) -> Array:
    """The samples [n, m] of the whole frame that a plane of chroma [H, W] was enlarged from, `smooth` or by repetition."""
    return _along(_along(plane, vertical, smooth).T, horizontal, smooth).T


def _along(plane: Array, reach: Reach, smooth: bool) -> Array:
    """The first axis of a plane [length, K] reduced to samples [samples, K]."""
    if reach.factor == 1:
        return np.pad(plane, ((reach.before, reach.samples - reach.before - reach.length), (0, 0)), mode="edge")
    place = reach.before + np.arange(reach.length)
    near = place // reach.factor
    beside = near
    if smooth and reach.factor == 2:  # larger factors are repeated by all decoders
        beside = near + np.where(place % 2 == 0, -1, 1)
        beside = beside.clip(near[0], near[-1]) if reach.ends else beside.clip(0, reach.samples - 1)
    apart = np.where(beside == near, 0.0, 0.75 * 0.25)
    diagonal = _summed(near, (0.75**2 + 2 * (0.75 * 0.25 - apart))[:, None], reach.samples)
    diagonal += _summed(beside, np.full((reach.length, 1), 0.25**2), reach.samples)
    upper = _summed(np.minimum(near, beside), apart[:, None], reach.samples) - SPRING
    right = _summed(near, 0.75 * plane, reach.samples) + _summed(beside, 0.25 * plane, reach.samples)
    diagonal[1:] += SPRING
    diagonal[:-1] += SPRING
    return _solved(diagonal[:, 0], upper[:, 0], right)


def _summed(index: NDArray[np.int_], values: Array, count: int) -> Array:
    """[count, K]: the sums of the rows of values [n, K] that have the same index; indices of every other row ascend."""
    total = np.zeros((count, values.shape[1]))
    for first in (0, 1):
        chosen = index[first::2]
        starts = np.flatnonzero(np.diff(chosen, prepend=-1))
        if len(starts):
            total[chosen[starts]] += np.add.reduceat(values[first::2], starts, axis=0)
    return total


def _solved(diagonal: Array, beside: Array, right: Array) -> Array:
    """The symmetric system with `beside` [n] (its last number unused) next to its diagonal, for columns right [n, K]."""
    pivots, solution = diagonal.copy(), right
    for i in range(1, len(pivots)):
        ratio = beside[i - 1] / pivots[i - 1]
        pivots[i] -= ratio * beside[i - 1]
        solution[i] -= ratio * solution[i - 1]
    solution[-1] /= pivots[-1]
    for i in range(len(pivots) - 2, -1, -1):
        solution[i] = (solution[i] - beside[i] * solution[i + 1]) / pivots[i]
    return solution
