"""How strong white noise can be at most: what the finest detail of the weakest colour leaves room for.

White noise is as strong at the finest frequencies as anywhere, and along every axis of colour. Texture fades towards fine
detail, and hardly has any across colours: a picture that is textured all over may look noisy to patches of pixels, but not
there. In grey pictures there is no other colour to look at, and the fall of the spectrum is judged: content that fades with
a power of frequency is fitted beside a constant (`quantised_noise.noise_before`). Chosen and checked on photographs reduced
to a quarter: docs/noise.md. And noise is everywhere: what a few blocks hardly have is none (`noise_everywhere`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import DCT, PATH, Array, Flags, transform_blocks
from leader.forensics.jpeg.quantised_noise import FEWEST_FLAT_BLOCKS, choose_flat_blocks, noise_before
from leader.forensics.noise.clipping import before_clipping
from leader.forensics.noise.level import find_unsaturated
from leader.transforms import BLOCK, OPPONENT

STEP = BLOCK // 2
FINEST = np.add.outer(np.arange(BLOCK), np.arange(BLOCK)) >= 10
"""Frequencies of a block that count as the finest."""
STRUCTURE = np.add.outer(np.arange(BLOCK), np.arange(BLOCK)) >= 2
SHARE = {1: 0.05, 3: 0.1}
"""Share of the blocks that is looked at, the flattest, by the number of channels."""
_CONSTANTS = read_constants("noise.texture_limit")
FADING = _CONSTANTS.number("fading")
ENOUGH_BLOCKS = _CONSTANTS.count("enough_blocks")
LEAST_SHARE, CHANCE, FEW_BLOCKS = _CONSTANTS.numbers("least_share", "chance", "few_blocks")
FEW_DEVIATE = _CONSTANTS.number("few_deviate")

EMPTY = 0.5 / 255 / math.sqrt(12)
"""Half of the rounding of 8 bits: a block with less detail than that shows no photograph."""


@dataclass(frozen=True)
class GreyPlane:
    """The mean of the channels of pixels [H, W, 1 or 3] in [0, 1], and how strong its white noise can be, found once."""

    pixels: Array
    known: Flags | None

    @property
    def channels(self) -> int:
        """Of the pixels."""
        return int(self.pixels.shape[2])

    @cached_property
    def plane(self) -> Array:
        """[H, W, 1]."""
        mean: Array = self.pixels.mean(2, keepdims=True)
        return mean

    @cached_property
    def limit(self) -> float:
        return white_limit(self.plane, self.known)


def white_limit(pixels: Array, known: Flags | None = None) -> float:
    """Standard deviation that white noise of pixels [H, W, 1 or 3] in [0, 1] has at most, some per cent of chance aside.

    known  [H, W] marks valid pixels; infinite where too few blocks are known
    """
    channels = pixels.shape[2]
    windows, usable = _windows(pixels, known)
    if int(usable.sum()) < FEWEST_FLAT_BLOCKS:
        return math.inf
    coefficients = _coefficients(pixels)
    flat = choose_flattest((coefficients[..., STRUCTURE] ** 2).sum((0, -1)), usable, SHARE[channels])
    levels = np.sqrt((coefficients[:, flat][..., FINEST] ** 2).mean((1, 2)))
    means = windows[flat].mean((2, 3))
    if channels == 3:  # each axis has lost what the channels that it is made of have lost
        shares = np.repeat(OPPONENT[:, None] ** 2, len(means), axis=1)
        return min(before_clipping(float(one), means.reshape(-1), share.reshape(-1)) for one, share in zip(levels, shares))
    level, fitted = float(levels[0]), _beside_content(pixels[..., 0], usable)
    few = pixels[..., 0].size < ENOUGH_BLOCKS * BLOCK**2
    fading = fitted < FADING * level and not few
    level = fitted if fading else max(math.sqrt(fitted * level), LEAST_SHARE * level if few else 0.0)
    return before_clipping(level, means.reshape(-1))


def noise_everywhere(pixels: Array, known: Flags | None = None) -> float:
    """Standard deviation of white noise of pixels [H, W, 1 or 3] in [0, 1] that all but FEW_BLOCKS of the blocks have along
    every axis of colour.

    Blocks without any detail were drawn, or lie beyond what a camera sees, and do not count. White noise of s gives s: the mean
    of n squares of it has chi-square's quantiles, here by Wilson and Hilferty. Infinite where too few blocks are known [H, W].
    """
    _, usable = _windows(pixels, known)
    if int(usable.sum()) < FEWEST_FLAT_BLOCKS:
        return math.inf
    power = (_coefficients(pixels)[:, usable][..., FINEST] ** 2).mean(-1)
    power = power[:, power.sum(0) > EMPTY**2]
    if power.shape[1] < FEWEST_FLAT_BLOCKS:
        return math.inf
    spread = 2 / (9 * int(FINEST.sum()))
    usual = (1 - spread + FEW_DEVIATE * math.sqrt(spread)) ** 3
    return math.sqrt(float(np.quantile(power, FEW_BLOCKS, axis=1).min()) / usual)


def _windows(pixels: Array, known: Flags | None) -> tuple[NDArray[np.float64], Flags]:
    """Overlapping blocks [R, X, C, 8, 8] of pixels [H, W, C], and which of them are known and not saturated."""
    windows = sliding_window_view(pixels, (BLOCK, BLOCK), axis=(0, 1))[::STEP, ::STEP]
    usable = find_unsaturated(windows)
    if known is not None:
        usable &= np.asarray(sliding_window_view(known, (BLOCK, BLOCK))[::STEP, ::STEP].all(axis=(2, 3)))
    return windows, usable


def _coefficients(pixels: Array) -> Array:
    """The DCT [C, R, X, 8, 8] of overlapping blocks of pixels along the axes of colour; of one channel along itself."""
    planes = np.einsum("ac,hwc->ahw", OPPONENT if pixels.shape[2] == 3 else np.eye(1), pixels)
    windows = sliding_window_view(planes, (BLOCK, BLOCK), axis=(1, 2))[:, ::STEP, ::STEP]
    found: Array = np.einsum("ki,arxij,lj->arxkl", DCT, windows, DCT, optimize=PATH)
    return found


def _beside_content(plane: Array, usable: Flags) -> float:
    """The noise of a plane [H, W] in [0, 1] that is left when content that fades with frequency is fitted beside it."""
    blocks = transform_blocks(255 * plane)
    rows, columns = blocks.known.shape
    flat = choose_flat_blocks(blocks, usable[::2, ::2][:rows, :columns])
    return noise_before(blocks.coefficients[flat], np.ones((BLOCK, BLOCK))) / 255 if flat.any() else math.inf


def choose_flattest(energy: Array, usable: Flags, share: float) -> Flags:
    """The usable windows [R, X] whose neighbours, two steps away, have the least energy.

    Judged by its neighbours, a window is not chosen for having drawn little noise.
    """
    weight = np.pad(usable.astype(np.float64), 2)
    padded = np.pad(np.where(usable, energy, 0.0), 2)
    total, count = (plane[:-4, 2:-2] + plane[4:, 2:-2] + plane[2:-2, :-4] + plane[2:-2, 4:] for plane in (padded, weight))
    surrounded = usable & (count > 0)
    if not surrounded.any():
        return usable
    around = np.where(surrounded, total / np.maximum(count, 1), np.inf)
    chosen: Flags = around <= np.quantile(around[surrounded], max(share, min(1.0, FEWEST_FLAT_BLOCKS / int(surrounded.sum()))))
    return chosen & surrounded
