"""Noise that grows with brightness, behind JPEG: variance = floor + gain * brightness before the picture was compressed.

Blocks of luma, Cb and Cr are sorted by brightness into bins, and the flattest of each bin tell how likely every noise level is
there, by how often their coefficients fell into cells of the steps (`quantised_noise`). One line is sought that all bins agree
with: a bin of flat blocks says much, one of texture little. Texture is taken for noise now and then, so a bin has no more than
`outvoted` against less noise than it shows; against more than it shows it has all it can say. The noise of a plane is that of
R, G and B weighed by the squares of their shares, and follows their brightness weighed so.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array, Flags
from leader.forensics.jpeg.noise_planes import NoisePlane, read_chroma, read_luma
from leader.forensics.jpeg.quantised_noise import NOISES, choose_flat_blocks
from leader.forensics.noise.shot import CLIPPED, GROWING, ShotNoise
from leader.pictures.jpeg_history import JpegHistory

_CONSTANTS = read_constants("jpeg.noise_curve")
MOST_BINS, FEWEST_BINS, FLAT_IN_BIN = _CONSTANTS.counts("most_bins", "fewest_bins", "flat_in_bin")
OUTVOTED, CLEAR_GROWTH = _CONSTANTS.numbers("outvoted", "clear_growth")
CUT_OFF, FIRST_LEVEL, LEAST_GAIN = _CONSTANTS.numbers("cut_off", "first_level", "least_gain")
LEAST_SURVIVING = _CONSTANTS.number("least_surviving")
SHARES = np.linspace(0, 1, 11)
"""Of the variance at the mean brightness that grow with it."""
LEVELS = 120
"""Standard deviations at the mean brightness that are tried."""
ROUNDS = 2
"""The first finds the level by which blocks near black and white are left out, the second the line."""


def find_shot_behind(pixels: Array, history: JpegHistory, known: Flags | None, least: float) -> ShotNoise | None:
    """The noise of pixels [H, W, 1 or 3] in [0, 1] before this compression where it clearly grows with brightness, else None.

    known  [H, W] marks valid pixels
    least  standard deviation that noise counts with at any brightness
    """
    luma = read_luma(pixels, history, known)
    planes = [luma, *read_chroma(pixels, history, known)]
    middle = float((pixels if known is None else pixels[known]).mean())
    line, growth = np.array([FIRST_LEVEL**2, 0.0]), 0.0
    for _ in range(ROUNDS):
        bins = [one for plane in planes for one in _profile_bins(plane, line)]
        if len(bins) < FEWEST_BINS:
            return None
        line, growth = _fit_line(bins, middle)
    dark, bright = _std(line, np.array([0.2, 0.8]))
    survives = (luma.steps / 2 < luma.unit * bright).mean()  # coarser steps leave little but content
    if survives < LEAST_SURVIVING or growth < CLEAR_GROWTH or line[1] < LEAST_GAIN or (bright / dark) ** 2 <= GROWING:
        return None
    return ShotNoise(float(line[1]), float(line[0]), least)


def _std(line: Array, brightness: Array) -> Array:
    found: Array = np.sqrt(line[0] + line[1] * brightness)
    return found


@dataclass(frozen=True)
class _Bin:
    """The flattest blocks of a plane that are about as bright.

    brightness  their mean, as the noise of the plane weighs the channels
    levels      [N], standard deviations of noise of [0, 1] pixels
    profile     [N], the log-likelihood of each, at most 0
    """

    brightness: float
    levels: Array
    profile: Array


def _profile_bins(plane: NoisePlane, line: Array) -> list[_Bin]:
    """The bins of a plane, without blocks that noise of this line would have cut off at black or white."""
    brightness = plane.means @ plane.shares
    lost = (plane.means > 1 - CLIPPED * _std(line, plane.means)) @ plane.shares
    usable = plane.blocks.known & (brightness > CLIPPED * _std(line, brightness)) & (lost < CUT_OFF)
    count = min(MOST_BINS, max(int(usable.sum()) // (2 * FLAT_IN_BIN), int(usable.sum() >= FLAT_IN_BIN)))
    found = []
    for low, high in pairwise(np.quantile(brightness[usable], np.linspace(0, 1, count + 1)) if count else ()):
        flat = choose_flat_blocks(plane.blocks, usable & (brightness >= low) & (brightness <= high), FLAT_IN_BIN)
        if flat.any():
            found.append(_Bin(float(brightness[flat].mean()), NOISES / plane.unit, plane.profile(flat)))
    return found


def _fit_line(bins: list[_Bin], middle: float) -> tuple[Array, float]:
    """(floor, gain) of the likeliest line, and by how much log-likelihood it is ahead of noise that does not grow.

    middle  mean brightness of the picture
    """
    levels = np.geomspace(min(one.levels[0] for one in bins), max(one.levels[-1] for one in bins), LEVELS)
    fits = []
    for share in SHARES:
        total = np.zeros(LEVELS)
        for one in bins:
            here = levels * np.sqrt(1 - share + share * one.brightness / middle)
            vote = np.interp(np.log(here), np.log(one.levels), one.profile)
            too_low = here < one.levels[int(one.profile.argmax())]
            total += np.where(too_low, np.maximum(vote, -OUTVOTED), vote)
        fits.append((float(total.max()), float(levels[int(total.argmax())]) ** 2, share))
    best, variance, share = max(fits)
    return np.array([variance * (1 - share), variance * share / middle]), best - fits[0][0]
