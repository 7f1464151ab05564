"""The noise level of a picture, estimated from the picture alone.

White noise adds sigma^2 to every eigenvalue of the covariance of small patches, while image content lives in a few large ones:
after dropping eigenvalues from the top until mean and median of the rest agree, their mean is sigma^2 (the test of Chen, Zhu,
Heng, "An efficient statistical method for image noise level estimation", ICCV 2015). Colour patches are taken jointly, since
content is correlated between channels and noise is not. To keep texture out, the estimate is repeated on the patches whose
gradients are no larger than noise alone explains. Noise that was clipped at black and white is weaker than it was before: patches
that touch the limits are left out where possible, and the rest is corrected with the moments of a clipped normal distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from leader.errors import LeaderError

Array = NDArray[np.float64]

MOST_PATCHES = 40_000
"""Patches looked at; more change the estimate by less than 1 %."""
SATURATED = 0.08
"""Largest share of pixels at black or white in any channel of a patch that is used."""
ROUNDS = 5


@dataclass(frozen=True)
class _Choice:
    """Side of the patches, and how many standard deviations of gradient energy beyond its mean still count as flat."""

    side: int
    tolerance: float


COLOUR, GREY = _Choice(5, 3.0), _Choice(7, 2.33)


def estimate_noise(image: NDArray[np.floating], known: NDArray[np.bool_] | None = None) -> float:
    """Standard deviation of the white noise of image [H, W, C] in [0, 1], C = 1 or 3; `known` [H, W] marks valid pixels."""
    pixels = np.asarray(image, dtype=np.float64)
    choice = COLOUR if pixels.shape[2] == 3 else GREY
    patches = _patches(pixels, known, choice.side)
    clipped = bool(pixels.min() >= 0 and pixels.max() <= 1)
    if clipped:
        patches = _unsaturated(patches)
    rows = patches.reshape(len(patches), -1)
    level, rows = _flat_level(patches, rows, choice)
    return _before_clipping(level, rows.reshape(-1, choice.side**2).mean(1)) if clipped else level


def _patches(pixels: Array, known: NDArray[np.bool_] | None, side: int) -> Array:
    """[N, C, side, side], evenly spread over the picture, fully known."""
    height, width, channels = pixels.shape
    need = 4 * channels * side * side
    if min(height, width) < 3 * side:
        raise LeaderError(
            f"The picture has {width} x {height} pixels, too few to estimate its noise; give sigma (0 for none)."
        )
    windows = sliding_window_view(pixels, (side, side), axis=(0, 1))  # a view: [rows, columns, C, side, side]
    down, across = windows.shape[:2]
    chosen = np.arange(down * across)
    if known is not None:
        chosen = chosen[sliding_window_view(known, (side, side)).all(axis=(2, 3)).reshape(-1)]
    if len(chosen) < need:
        raise LeaderError(
            f"Only {len(chosen)} patches of {side} x {side} known pixels were found, too few to estimate the noise; "
            "give sigma (0 for none)."
        )
    if len(chosen) > MOST_PATCHES:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_PATCHES).astype(int)]
    picked: Array = windows[chosen // across, chosen % across]
    return picked


def _unsaturated(patches: Array) -> Array:
    """Patches with few pixels at black or white; where there are hardly any, the best tenth."""
    share = ((patches <= 0) | (patches >= 1)).mean(axis=(2, 3)).max(axis=1)
    return patches[share <= max(SATURATED, float(np.quantile(share, 0.1)))]


def _flat_level(patches: Array, rows: Array, choice: _Choice) -> tuple[float, Array]:
    """Noise level of the patches that look flat at that very level, and those patches."""
    energy = (np.diff(patches, axis=2) ** 2).sum((1, 2, 3)) + (np.diff(patches, axis=3) ** 2).sum((1, 2, 3))
    mean, spread = _energy_moments(choice.side, patches.shape[1])
    level, flat = _bulk_level(rows), rows
    enough = max(8 * rows.shape[1], len(rows) // 20)
    for _ in range(ROUNDS):
        keep = energy < level**2 * (mean + choice.tolerance * spread)
        if keep.sum() < enough:
            break
        before, flat = level, rows[keep]
        level = _bulk_level(flat)
        if abs(level - before) < 2e-3 * before:
            break
    return level, flat


def _energy_moments(side: int, channels: int) -> tuple[float, float]:
    """Mean and standard deviation of the gradient energy x^T G x of a patch of unit noise: tr G and sqrt(2 tr G^2)."""
    difference = np.diff(np.eye(side), axis=0)
    along = difference.T @ difference
    both = np.kron(along, np.eye(side)) + np.kron(np.eye(side), along)
    return channels * float(np.trace(both)), math.sqrt(2 * channels * float((both * both).sum()))


def _bulk_level(rows: Array) -> float:
    """sqrt of the mean of the eigenvalues that are left when mean and median agree."""
    values = np.maximum(np.linalg.eigvalsh(np.cov(rows.T))[::-1], 0)
    for first in range(len(values)):
        rest = values[first:]
        if np.median(rest) >= rest.mean():
            return math.sqrt(float(rest.mean()))
    return math.sqrt(float(values[-1]))


def _before_clipping(level: float, brightness: Array) -> float:
    """The noise level that, clipped to [0, 1] at these mean brightnesses, leaves `level`."""
    if level == 0:
        return 0.0
    counts, edges = np.histogram(brightness, bins=50, range=(0, 1))
    weights, centres = counts / counts.sum(), (edges[1:] + edges[:-1]) / 2
    low, high = level, 3 * level
    for _ in range(30):
        middle = (low + high) / 2
        if float(weights @ _clipped_variance(centres, middle)) < level**2:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _clipped_variance(mean: Array, sigma: float) -> Array:
    """Variance of a clipped normal variable whose mean after clipping is `mean`; its centre is found by iteration."""
    centre = mean.copy()
    for _ in range(30):
        after, variance = _clipped_moments(centre, sigma)
        centre = np.clip(centre + mean - after, -2 * sigma, 1 + 2 * sigma)
    return _clipped_moments(centre, sigma)[1]


def _clipped_moments(centre: Array, sigma: float) -> tuple[Array, Array]:
    """Mean and variance of clip(N(centre, sigma^2), 0, 1)."""
    low, high = -centre / sigma, (1 - centre) / sigma
    below, above = _normal_cdf(low), 1 - _normal_cdf(high)
    inside = 1 - below - above
    density_low, density_high = _normal_density(low), _normal_density(high)
    mean = centre * inside + sigma * (density_low - density_high) + above
    square = (
        (centre**2 + sigma**2) * inside
        + 2 * sigma * centre * (density_low - density_high)
        + sigma**2 * (low * density_low - high * density_high)
        + above
    )
    return mean, square - mean**2


def _normal_cdf(x: Array) -> Array:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x])


def _normal_density(x: Array) -> Array:
    density: Array = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return density
