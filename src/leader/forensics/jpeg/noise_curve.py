"""Noise that grows with brightness, behind JPEG: variance = floor + gain * brightness before the picture was compressed.

Blocks are sorted by brightness into bins, and the flattest of each bin tell how likely every noise level is there, by how often
their coefficients fell into cells of the steps (`quantised_noise`). One line is fitted to all bins: a bin of flat blocks counts
much, one of texture little, and one that is misled by texture no more than `outvoted`. The noise of luma is that of
R, G and B weighed by the squares of their shares, and follows their brightness weighed so.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import (
    LUMA,
    LUMA_GAIN,
    Array,
    Blocks,
    Flags,
    average_blocks,
    compute_luma,
    transform_blocks,
)
from leader.forensics.jpeg.quantised_noise import NOISES, choose_flat_blocks, profile_noise
from leader.forensics.noise.shot import CLIPPED, GROWING, ShotNoise
from leader.pictures.jpeg_history import JpegHistory

_CONSTANTS = read_constants("jpeg.noise_curve")
MOST_BINS, FEWEST_BINS, FLAT_IN_BIN = _CONSTANTS.counts("most_bins", "fewest_bins", "flat_in_bin")
OUTVOTED, TEMPER, CLEAR_GROWTH = _CONSTANTS.numbers("outvoted", "temper", "clear_growth")
CUT_OFF, FIRST_LEVEL, LEAST_GAIN = _CONSTANTS.numbers("cut_off", "first_level", "least_gain")
LEAST_SURVIVING = _CONSTANTS.number("least_surviving")
SHARES = np.linspace(0, 1, 11)
"""Of the variance at the mean brightness that grow with it."""
ROUNDS = 2
"""The first finds the level by which blocks near black and white are left out, the second the line."""


def find_shot_behind(pixels: Array, history: JpegHistory, known: Flags | None, least: float) -> ShotNoise | None:
    """The noise of pixels [H, W, 1 or 3] in [0, 1] before this compression where it clearly grows with brightness, else None.

    known  [H, W] marks valid pixels
    least  standard deviation that noise counts with at any brightness
    """
    colour = pixels.shape[2] == 3
    gain, shares = (LUMA_GAIN, LUMA**2 / LUMA_GAIN**2) if colour else (1.0, np.ones(1))
    blocks = transform_blocks(compute_luma(pixels), history.offset, known)
    means = np.stack([average_blocks(pixels[..., channel], history.offset) for channel in range(len(shares))], axis=-1)
    brightness = means @ shares
    line, growth = np.array([FIRST_LEVEL**2, 0.0]), 0.0
    for _ in range(ROUNDS):
        lost = (means > 1 - CLIPPED * _std(line, means)) @ shares
        usable = blocks.known & (brightness > CLIPPED * _std(line, brightness)) & (lost < CUT_OFF)
        bins = min(MOST_BINS, int(usable.sum()) // (2 * FLAT_IN_BIN))
        if bins < FEWEST_BINS:
            return None
        line, growth = _fit_line(*_profile_bins(blocks, brightness, usable, history.luma_steps(), bins), 255 * gain)
    dark, bright = _std(line, np.array([0.2, 0.8]))
    survives = (history.luma_steps() / 2 < 255 * gain * bright).mean()  # coarser steps leave little but content
    if survives < LEAST_SURVIVING or growth < CLEAR_GROWTH or line[1] < LEAST_GAIN or (bright / dark) ** 2 <= GROWING:
        return None
    return ShotNoise(float(line[1]), float(line[0]), least)


def _std(line: Array, brightness: Array) -> Array:
    found: Array = np.sqrt(line[0] + line[1] * brightness)
    return found


def _profile_bins(blocks: Blocks, brightness: Array, usable: Flags, steps: Array, bins: int) -> tuple[Array, Array]:
    """The mean brightness [bins] of the flat blocks of each bin, and the log-likelihood [bins, noise levels] of `NOISES`."""
    borders = np.quantile(brightness[usable], np.linspace(0, 1, bins + 1))
    places, profiles = [], []
    for low, high in pairwise(borders):
        flat = choose_flat_blocks(blocks, usable & (brightness >= low) & (brightness <= high), FLAT_IN_BIN)
        places.append(float(brightness[flat].mean()))
        profiles.append(TEMPER * profile_noise(blocks.coefficients[flat], steps))
    return np.array(places), np.array(profiles)


def _fit_line(places: Array, profiles: Array, unit: float) -> tuple[Array, float]:
    """(floor, gain) of the likeliest line, and by how much log-likelihood it is ahead of noise that does not grow.

    unit  what a coefficient has of noise of 1 in R, G and B
    """
    middle = float(places.mean())
    fits = []
    for share in SHARES:
        shape = np.sqrt(1 - share + share * places / middle)
        levels = np.log(np.multiply.outer(NOISES, shape))
        votes = [np.interp(one, np.log(NOISES), profile) for one, profile in zip(levels.T, profiles, strict=True)]
        total = np.maximum(votes, -OUTVOTED).sum(0)
        fits.append((float(total.max()), (NOISES[int(total.argmax())] / unit) ** 2, share))
    best, variance, share = max(fits)
    return np.array([variance * (1 - share), variance * share / middle]), best - fits[0][0]
