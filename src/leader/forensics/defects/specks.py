"""Specks: salt and pepper, dead pixels. A speck is a pixel that no two of its neighbours resemble.

Edges, lines and corners have two such neighbours; texture, stars and grain have their own scale, the median of the same
number around them, which a speck must exceed several times. Pure black and white need less, where there are enough of them and
they are no clipped noise (`clipped_noise`); other specks are defects where many stand out very far, since the tail of a
texture ends soon.
"""

import math

import numpy as np
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.defects.clipped_noise import NORMAL_MEDIAN, find_limits, is_clipped_noise
from leader.forensics.defects.neighbours import NEIGHBOURS, find_largest, median_around, shift_values

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_CONSTANTS = read_constants("defects.specks")
SPECK_ROUNDS = _CONSTANTS.count("speck_rounds")
SPECK, SPECK_SCALE, PURE, FEWEST_PURE = _CONSTANTS.numbers("speck", "speck_scale", "pure", "fewest_pure")
FEWEST_SPECKS = _CONSTANTS.count("fewest_specks")
WEAK_OUTLIER, OUTLIER, FAR_OUTLIER = _CONSTANTS.numbers("weak_outlier", "outlier", "far_outlier")
FAR_SHARE, APART, SPREAD, MANY_OUTLIERS = _CONSTANTS.numbers("far_share", "apart", "spread", "many_outliers")
DROWNED_ERROR, DROWNED_ODDS, MANY_DROWNED = _CONSTANTS.numbers("drowned_error", "drowned_odds", "many_drowned")
BESIDE = ((0, 1), (1, 0), (0, -1), (-1, 0))


def speckness(pixels: Floats, known: Flags) -> Floats:
    """[H, W], how far a pixel is from the second nearest, in colour, of its known neighbours; channels by their largest.

    At the border of the picture from the nearest: a line that runs out of it has its other neighbour outside.
    """
    nearest = np.full(known.shape, np.inf, dtype=np.float32)
    second = nearest.copy()
    for down, right in NEIGHBOURS:
        usable = shift_values(known, down, right) & _within(known.shape, down, right)
        distance = np.where(usable, find_largest(np.abs(shift_values(pixels, down, right) - pixels)), np.float32(np.inf))
        second = np.minimum(second, np.maximum(nearest, distance))
        nearest = np.minimum(nearest, distance)
    second[[0, -1]], second[:, [0, -1]] = nearest[[0, -1]], nearest[:, [0, -1]]
    return np.where(np.isfinite(second), second, np.float32(0))


def _within(shape: tuple[int, ...], down: int, right: int) -> Flags:
    """[H, W], where the neighbour lies within the picture."""
    rows, columns = np.arange(shape[0]) + down, np.arange(shape[1]) + right
    return ((rows >= 0) & (rows < shape[0]))[:, None] & ((columns >= 0) & (columns < shape[1]))


def find_specks(pixels: Floats) -> Flags:
    """[H, W], the specks of pixels [H, W, C] in [0, 1]."""
    at_limits = find_limits(pixels)
    pure: Flags = np.logical_or(*at_limits)
    known = np.ones(pure.shape, dtype=bool)
    candidates = pure | ~is_spread(pixels.mean(2))
    limits: Floats | None = None
    for _ in range(SPECK_ROUNDS):
        unlike = speckness(pixels, known)
        standing_out = np.where(candidates, unlike / (SPECK + SPECK_SCALE * median_around(unlike, 2)), np.float32(0))
        if limits is None:
            noise = is_clipped_noise(at_limits & (standing_out > PURE), pixels, max(FEWEST_SPECKS, FEWEST_PURE * pure.size))
            limits = np.where(pure, math.inf if noise else PURE, _limit(standing_out[~pure], pure.size))
        found = known & (standing_out > limits)
        if not found.any():
            break
        known &= ~found
    return ~known


def find_drowned(luma: Floats) -> Flags:
    """[H, W], the salt and pepper of luma [H, W] that strong compression has smeared, so that no pixel is pure any more.

    There, black or white with a normal error is more likely than what is around. In texture such pixels hang together: if few
    stand alone, there are none.
    """
    usual = median_around(luma, 1)
    off = luma - usual
    spread = np.maximum(median_around(np.abs(off), 2) / NORMAL_MEDIAN, DROWNED_ERROR)
    gains = [(limit - usual) * (off - (limit - usual) / 2) for limit in (0.0, 1.0)]
    found: Flags = np.maximum(*gains) > DROWNED_ODDS * spread**2
    alone = found & ~np.logical_or.reduce([shift_values(found, *step) for step in NEIGHBOURS])
    return found if float(alone.mean()) >= MANY_DROWNED else np.zeros_like(found)


def is_spread(plane: Floats) -> Flags:
    """[H, W], where the four nearest share a good part of what a pixel differs from its surroundings: stars, highlights."""
    usual = median_around(plane, 2)
    off = plane - usual
    beside = np.mean([shift_values(plane, *step) - usual for step in BESIDE], axis=0)
    spread: Flags = beside * np.sign(off) > SPREAD * np.abs(off)
    return spread


def _limit(standing_out: Floats, size: int) -> float:
    weak, beyond, far = (int((standing_out > limit).sum()) for limit in (WEAK_OUTLIER, OUTLIER, FAR_OUTLIER))
    if beyond > MANY_OUTLIERS * size:
        return WEAK_OUTLIER
    apart = far >= FAR_SHARE * beyond or beyond >= APART * weak
    return (WEAK_OUTLIER + OUTLIER) / 2 if beyond >= FEWEST_SPECKS and apart else math.inf
