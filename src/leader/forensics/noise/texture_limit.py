"""How strong white noise can be at most: what the finest detail of the weakest colour leaves room for.

White noise is as strong at the finest frequencies as anywhere, and along every axis of colour. Texture fades towards fine
detail, and hardly has any across colours: a picture that is textured all over may look noisy to patches of pixels, but not
there. In grey pictures there is no other colour to look at, and the fall of the spectrum is judged: content that fades with
a power of frequency is fitted beside a constant (`quantised_noise.noise_before`). Chosen and checked on photographs reduced
to a quarter: docs/noise.md. And noise is everywhere: what a few blocks hardly have is none (`noise_everywhere`).
"""

import math
from statistics import NormalDist

import numpy as np

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array, Flags, transform_blocks
from leader.forensics.jpeg.quantised_noise import FEWEST_FLAT_BLOCKS, choose_flat_blocks, choose_flattest, noise_before
from leader.forensics.noise.clipping import before_clipping
from leader.forensics.noise.windows import find_unsaturated, share_clipped, transform_windows, view_windows
from leader.transforms import BLOCK, OPPONENT

FINEST = np.add.outer(np.arange(BLOCK), np.arange(BLOCK)) >= 10
"""Frequencies of a block that count as the finest."""
STRUCTURE = np.add.outer(np.arange(BLOCK), np.arange(BLOCK)) >= 2
SHARE = {1: 0.05, 3: 0.1}
"""Share of the blocks that is looked at, the flattest, by the number of channels."""
_CONSTANTS = read_constants("noise.texture_limit")
FADING = _CONSTANTS.number("fading")
ENOUGH_BLOCKS = _CONSTANTS.count("enough_blocks")
LEAST_SHARE, CHANCE, FEW_BLOCKS = _CONSTANTS.numbers("least_share", "chance", "few_blocks")

EMPTY = 0.5 / 255 / math.sqrt(12)
"""Half of the rounding of 8 bits: a block with less detail than that shows no photograph."""


def white_limit(pixels: Array, known: Flags | None = None) -> float:
    """Standard deviation that white noise of pixels [H, W, 1 or 3] in [0, 1] has at most, some per cent of chance aside.

    known  [H, W] marks valid pixels; infinite where too few blocks are known
    """
    channels = pixels.shape[2]
    windows, usable, coefficients = _look_at(pixels, known)
    if int(usable.sum()) < FEWEST_FLAT_BLOCKS:
        return math.inf
    flat = choose_flattest((coefficients[..., STRUCTURE] ** 2).sum((0, -1)), usable, usable, SHARE[channels])
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
    _, usable, coefficients = _look_at(pixels, known)
    power = (coefficients[:, usable][..., FINEST] ** 2).mean(-1)
    power = power[:, power.sum(0) > EMPTY**2]
    if power.shape[1] < FEWEST_FLAT_BLOCKS:
        return math.inf
    usual = find_quantile(FEW_BLOCKS, int(FINEST.sum()))
    return math.sqrt(float(np.quantile(power, FEW_BLOCKS, axis=1).min()) / usual)


def _look_at(pixels: Array, known: Flags | None) -> tuple[Array, Flags, Array]:
    """Overlapping blocks [R, X, C, 8, 8] of pixels, which of them are known and not saturated, and their DCT [C, R, X, 8, 8]
    along the axes of colour.
    """
    windows, whole = view_windows(pixels, known, BLOCK)
    axes = OPPONENT if pixels.shape[2] == 3 else np.eye(1)
    return windows, whole & find_unsaturated(share_clipped(pixels, BLOCK, BLOCK // 2)), transform_windows(pixels, axes, BLOCK)


def _beside_content(plane: Array, usable: Flags) -> float:
    """The noise of a plane [H, W] in [0, 1] that is left when content that fades with frequency is fitted beside it."""
    blocks = transform_blocks(255 * plane)
    rows, columns = blocks.known.shape
    flat = choose_flat_blocks(blocks, usable[::2, ::2][:rows, :columns])
    return noise_before(blocks.coefficients[flat], np.ones((BLOCK, BLOCK))) / 255 if flat.any() else math.inf


def find_quantile(share: float, count: float) -> float:
    """What the mean square of `count` normal deviates falls below in this share of draws, after Wilson and Hilferty."""
    spread = 2 / (9 * count)
    return (1 - spread + NormalDist().inv_cdf(share) * math.sqrt(spread)) ** 3
