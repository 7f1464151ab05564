"""Noise that grows with brightness, like that of counted photons: variance = floor + gain * brightness.

In the flattest blocks, of all or else of every brightness, the variance of the finest detail of every channel is compared with
the mean of that channel. A line is fitted by weighted least squares; it counts where its slope is clear and makes bright
pixels much noisier than dark ones. What was clipped at black and white has lost noise and was moved: both are undone with the
moments of a clipped normal variable. Texture is also stronger where it is bright, but hardly has colour: the noise is at most
what the weakest axis of colour has of the variance on the line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from leader.errors import LeaderError
from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array, Flags
from leader.forensics.jpeg.quantised_noise import choose_flattest
from leader.forensics.noise.clipping import share_left, unclip_mean
from leader.forensics.noise.texture_limit import CHANCE, FINEST, STRUCTURE
from leader.forensics.noise.windows import share_clipped, transform_windows, view_windows
from leader.transforms import BLOCK, OPPONENT

_CONSTANTS = read_constants("noise.shot")
FITTED_SHARE = _CONSTANTS.number("fitted_share")
FEWEST_FITTED, SHARES = _CONSTANTS.counts("fewest_fitted", "shares")
OVERLAP, CLEAR_SLOPE, GROWING = _CONSTANTS.numbers("overlap", "clear_slope", "growing")
SMALLEST_GAIN, DARKEST, SMOOTHING = _CONSTANTS.numbers("smallest_gain", "darkest", "smoothing")
MOST_LOST = _CONSTANTS.number("most_lost")
LINE_ROUNDS = _CONSTANTS.count("line_rounds")


@dataclass(frozen=True)
class ShotNoise:
    """Variance of [0, 1] pixels: floor + gain * brightness, never below least^2."""

    gain: float
    floor: float
    least: float

    def __post_init__(self) -> None:
        numbers = (self.gain, self.floor, self.least)
        if not all(isinstance(one, float) and math.isfinite(one) for one in numbers) or not (self.gain > 0 and self.least > 0):
            raise LeaderError(f"Shot noise has a gain and a least value above 0 and a finite floor; found {numbers}.")

    def std(self, brightness: Array) -> Array:
        """Standard deviation at these brightnesses."""
        found: Array = np.sqrt(np.maximum(self.floor + self.gain * brightness.clip(0, 1), self.least**2))
        return found

    def level(self, pixels: NDArray[np.floating[Any]]) -> float:
        """Root mean square of the standard deviation over pixels."""
        return math.sqrt(float((self.std(np.asarray(pixels, np.float64)) ** 2).mean()))

    def weakened(self, share: float) -> ShotNoise:
        """With `share` of its variance."""
        return replace(self, gain=share * self.gain, floor=share * self.floor)

    def raised(self, sigma: float) -> ShotNoise:
        """With white noise of standard deviation sigma added."""
        return self if sigma == 0 else replace(self, floor=self.floor + sigma**2, least=math.hypot(self.least, sigma))

    def words(self) -> str:
        """The finding as a sentence without a full stop."""
        dark, bright = self.std(np.array([0.1, 0.9]))
        return f"The noise grows with brightness: from {dark:.2g} in the shadows to {bright:.2g} in bright areas"

    def map(self, pixels: NDArray[np.floating[Any]]) -> Array:
        """Standard deviation of every pixel of [H, W, C], by the brightness around it."""
        around = np.asarray(pixels, np.float64)
        for axis in (0, 1):
            around = _smoothed(around, axis)
        return self.std(around)


def _smoothed(values: Array, axis: int) -> Array:
    """Gaussian means along an axis, the picture mirrored at its ends."""
    reach = int(3 * SMOOTHING)
    taps = np.exp(-((np.arange(-reach, reach + 1) / SMOOTHING) ** 2) / 2)
    width = [(reach, reach) if other == axis else (0, 0) for other in range(values.ndim)]
    windows = sliding_window_view(np.pad(values, width, mode="symmetric"), 2 * reach + 1, axis=axis)
    smoothed: Array = windows @ (taps / taps.sum())
    return smoothed


def shot_noise(pixels: Array, known: Flags | None, least: float) -> ShotNoise | None:
    """The noise of pixels [H, W, 1 or 3] in [0, 1] if it clearly grows with brightness, else None.

    known  [H, W] marks valid pixels
    least  smallest standard deviation at any brightness: that of rounding
    """
    blocks = Blocks.of(pixels, known)
    if blocks is None:
        return None
    chosen = [choose_flattest(blocks.energy, blocks.usable, blocks.usable, FITTED_SHARE)]
    if pixels.shape[2] == 3:
        # the flattest of all may be a sky of one brightness; without colour, textures would pass for noise
        chosen.append(blocks.flattest_of_every_brightness())
    found = (_fit(blocks.coefficients[flat], blocks.mean[flat], least) for flat in chosen)
    return next((one for one in found if one is not None), None)


@dataclass(frozen=True)
class Blocks:
    """Overlapping blocks [R, X, C] of a picture.

    coefficients  [R, X, C, 8, 8]; mean: [R, X, C]
    usable        [R, X], which are known, and not most of them black or white
    energy        [R, X], what is not flat
    """

    coefficients: Array
    mean: Array
    usable: Flags
    energy: Array

    @classmethod
    def of(cls, pixels: Array, known: Flags | None) -> Blocks | None:
        """Those of pixels [H, W, C]; None if too few of them are usable."""
        usable = view_windows(pixels, known, BLOCK)[1] & (share_clipped(pixels, BLOCK, BLOCK // 2) <= MOST_LOST)
        if int(usable.sum()) < FEWEST_FITTED:
            return None
        coefficients = np.moveaxis(transform_windows(pixels, np.eye(pixels.shape[2]), BLOCK), 0, 2)
        mean = coefficients[..., 0, 0] / BLOCK
        # relative to the brightness, otherwise dark blocks would always be the flattest
        energy = (coefficients[..., STRUCTURE] ** 2).sum((2, 3)) / (mean.mean(2) + 0.05)
        return cls(coefficients, mean, usable, energy)

    def flattest_of_every_brightness(self) -> Flags:
        """The flattest of the usable blocks [R, X] in each of some equal shares by brightness."""
        brightness = self.mean.mean(2)
        edges = np.quantile(brightness[self.usable], np.linspace(0, 1, SHARES + 1))
        parts = [self.usable & (brightness >= low) & (brightness <= high) for low, high in pairwise(edges)]
        return np.asarray(np.logical_or.reduce([choose_flattest(self.energy, part, part, FITTED_SHARE) for part in parts]))


def _fit(coefficients: Array, mean: Array, least: float) -> ShotNoise | None:
    """The noise of blocks [N, C, 8, 8] of these means [N, C]."""
    line = fit_line(coefficients, mean, least)
    if line is None or line.gain < max(CLEAR_SLOPE * line.gain_error, SMALLEST_GAIN):
        return None
    middle = math.sqrt(max(line.floor + line.gain / 2, least**2))
    found = ShotNoise(line.gain, line.floor, max(least, DARKEST * middle))
    dark, bright = found.std(np.array([0.2, 0.8]))
    if (bright / dark) ** 2 <= GROWING:
        return None
    if mean.shape[1] == 1:
        return found
    share = share_of_weakest_colour(found, coefficients, mean)
    return found.weakened(share) if share * found.gain >= SMALLEST_GAIN else None


def share_of_weakest_colour(found: ShotNoise, coefficients: Array, mean: Array) -> float:
    """The share of the variance of `found` that blocks [N, 3, 8, 8] of these means [N, 3] have along the weakest axis of
    colour, at most 1: noise has all of it along every axis, texture little across colours.
    """
    turned = np.einsum("ac,nckl->nakl", OPPONENT, coefficients)
    has = (turned[..., FINEST] ** 2).mean((0, 2))
    std = found.std(unclip_mean(mean, found.std(mean)))
    said = (share_left(mean, std) * std**2).mean(0) @ (OPPONENT**2).T
    return min(1.0, CHANCE**2 * float((has / said).min()))


@dataclass(frozen=True)
class Line:
    """Variance = floor + gain * brightness, and the standard errors of both."""

    floor: float
    gain: float
    floor_error: float
    gain_error: float


def fit_line(coefficients: Array, mean: Array, least: float) -> Line | None:
    """The line through the variances of blocks [N, C, 8, 8] of these means [N, C], texture left out as it is met; None where
    they do not tell.
    """
    mean, variance = mean.reshape(-1), (coefficients[..., FINEST] ** 2).mean(-1).reshape(-1)
    if variance.size < FEWEST_FITTED:
        return None
    spread = math.sqrt(2 / int(FINEST.sum()))
    line, covariance = np.array([max(float(np.median(variance)), least**2), 0.0]), np.eye(2)
    keep = np.ones(len(variance), bool)
    weights, brightness = np.full(len(variance), 1 / line[0]), mean
    for _ in range(LINE_ROUNDS):
        std = np.sqrt(np.maximum(line[0] + line[1] * brightness.clip(0, 1), least**2))
        brightness, left = unclip_mean(mean, std), share_left(mean, std)
        whole = left >= MOST_LOST
        unclipped = variance / np.maximum(left, MOST_LOST)
        design = np.stack([np.ones_like(brightness), brightness], axis=1)
        rows = design[keep & whole] * weights[keep & whole, None]
        covariance = np.linalg.pinv(rows.T @ rows)
        line = covariance @ (rows.T @ (unclipped * weights)[keep & whole])
        expected = np.maximum(design @ line, least**2)
        weights = left / expected
        keep = unclipped < expected * (1 + 3 * spread)
        if int((keep & whole).sum()) < FEWEST_FITTED // 2:
            return None
    if not covariance[1, 1] > 0:
        return None  # all blocks have the same brightness: no line can be fitted
    errors = OVERLAP * spread * np.sqrt(np.diag(covariance))
    return Line(float(line[0]), float(line[1]), float(errors[0]), float(errors[1]))
