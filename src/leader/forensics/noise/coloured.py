"""The spectrum of noise that is not white: resized, demosaiced or blotchy, stronger in one colour than in another.

Blocks of 16 x 16 pixels are transformed by the DCT along the opponent axes of colour, and their power is looked at where the
picture is flattest. Noise is the same everywhere, content is not: P(a), the mean power of the flattest share a, stays
constant for noise if a larger share is taken, and grows for content. With content growing by CONTRAST from the smaller to the
larger share, what does not grow is (CONTRAST P(small) - P(large)) / (CONTRAST - 1). Uniform texture is the exception; it is
almost without colour, and what colour it has lies along one axis. So neither of the colour axes counts for much more than the
other, and grey for no more than the finest detail (`white_limit`) or the noise of the colour axes explains. Where even the
flattest blocks have far more than what is left, the picture is texture all over, and nothing was found; nor where few blocks
have as little as the flattest: noise is a floor on which many of them lie, as unlike each other as chance makes them.
"""

import math

import numpy as np

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import Array, Flags
from leader.forensics.jpeg.quantised_noise import choose_flattest
from leader.forensics.noise.spectrum import NoiseSpectrum
from leader.forensics.noise.texture_limit import find_quantile, white_limit
from leader.forensics.noise.windows import find_unsaturated, share_clipped, transform_windows, view_windows
from leader.transforms import OPPONENT

SIDE = 16
_CONSTANTS = read_constants("noise.coloured")
SMALL_SHARE, LARGE_SHARE, CONTRAST = _CONSTANTS.numbers("small_share", "large_share", "contrast")
STEEPEST, LOOKED_AT_CLIPPED = _CONSTANTS.numbers("steepest", "looked_at_clipped")
FEWEST_BLOCKS, FEWEST_IN_PICTURE = _CONSTANTS.counts("fewest_blocks", "fewest_in_picture")
GREY_OVER_COLOUR, COLOUR_OVER_COLOUR = _CONSTANTS.numbers("grey_over_colour", "colour_over_colour")
FAINTEST_COLOURED, FLATTEST_BLOCKS = _CONSTANTS.numbers("faintest_coloured", "flattest_blocks")
UNEXPLAINED, STRONG, MANY_BLOCKS = _CONSTANTS.numbers("unexplained", "strong", "many_blocks")
MOST_UNEVEN, FAINTEST_FREQUENCY, NOT_WHITE = _CONSTANTS.numbers("most_uneven", "faintest_frequency", "not_white")
LOWEST_RINGS, FEWEST_STRONG = _CONSTANTS.counts("lowest_rings", "fewest_strong")

_FREQUENCY: Array = np.hypot(*np.meshgrid(np.arange(float(SIDE)), np.arange(float(SIDE)), indexing="ij"))
_EDGES = np.array([1.0, 1.75, 2.5, 4.0, 5.5, 7.0, 8.5, 10.0, 11.5, 13.0, 14.5])
_GROUPS = np.digitize(_FREQUENCY, _EDGES)
"""[16, 16] rings of frequencies that share their power: 0 is the mean of a block, the corners are one."""
_SIZES = np.bincount(_GROUPS.reshape(-1)).astype(np.float64)
_MEANS: Array = (_GROUPS.reshape(-1, 1) == np.arange(len(_SIZES))) / _SIZES
"""[256, rings], what makes the mean power of each ring of a block."""


def noise_spectrum(
    pixels: Array,
    known: Flags | None,
    least: float,
    uneven: float = MOST_UNEVEN,
    limit: float | None = None,
    fewest: int = FEWEST_STRONG,
) -> NoiseSpectrum | None:
    """The spectrum of the noise of pixels [H, W, 1 or 3] in [0, 1]; None if it is not distinguishable from white noise, or not
    measurable.

    In grey pictures coloured noise is not distinguishable from texture.

    known   [H, W] marks valid pixels
    least   standard deviation that the noise has at any frequency: that of rounding
    uneven  how many times as unlike in colour as chance makes them blocks may be; more behind JPEG, which sets weak
            coefficients to zero in some of them
    limit   what white noise of the mean of the channels has at most, if it is known
    fewest  coefficients of the colours in which it must be strong; behind JPEG, which leaves few, any
    """
    rings = None if pixels.shape[2] == 1 or min(pixels.shape[:2]) < SIDE else _rings(pixels, known)
    if rings is None:
        return None
    blocks, usable = rings
    powers = _lasting(blocks, usable)
    weaker = powers[1:].min(0)
    if (powers[0] > GREY_OVER_COLOUR * weaker).any():
        limit = white_limit(pixels.mean(2, keepdims=True), known) if limit is None else limit
        powers[0] = np.minimum(powers[0], np.maximum(3 * limit**2, GREY_OVER_COLOUR * weaker))
    powers[1:] = np.minimum(powers[1:], COLOUR_OVER_COLOUR * weaker)
    sizes = _SIZES / SIDE**2
    powers = np.maximum(powers, max(least**2, FAINTEST_FREQUENCY**2 * float((powers @ sizes).mean())))
    mean = float((powers @ sizes).mean())
    distance = float((np.abs(np.log2(powers / mean)) @ sizes).mean())
    if mean < FAINTEST_COLOURED**2 or distance < NOT_WHITE or _is_content(blocks[:, usable], powers, mean, uneven, fewest):
        return None
    table = powers[:, _GROUPS]
    return NoiseSpectrum(np.pad(table, ((0, 0), (0, 1), (0, 1)), mode="edge"))


def _rings(pixels: Array, known: Flags | None) -> tuple[Array, Flags] | None:
    """Power [3, R, X, rings] of blocks per axis of colour and ring of frequencies, and which [R, X] to look at; None where
    those are too few.
    """
    share = share_clipped(pixels, SIDE, SIDE // 2)
    # clipped noise is weaker, but of the same shape
    usable = view_windows(pixels, known, SIDE)[1] & find_unsaturated(share, LOOKED_AT_CLIPPED)
    if usable.size < FEWEST_IN_PICTURE or int(usable.sum()) < FEWEST_BLOCKS:
        return None
    power = transform_windows(pixels, OPPONENT, SIDE) ** 2
    return power.reshape(*power.shape[:3], -1) @ _MEANS, usable


def _lasting(rings: Array, usable: Flags) -> Array:
    """Noise power [3, rings]: what blocks [3, R, X, rings] keep where a smaller share of them, the flattest, is taken."""
    found = []
    for axis in rings:
        energy = axis[..., 1:] @ _SIZES[1:]
        small, large = (axis[choose_flattest(energy, usable, usable, share)].mean(0) for share in (SMALL_SHARE, LARGE_SHARE))
        lasting = np.maximum(CONTRAST * small - large, 0) / (CONTRAST - 1)
        for ring in (2, 1):
            lasting[ring] = min(lasting[ring], STEEPEST * lasting[ring + 1])
        lasting[0] = lasting[1]  # the mean of a block says nothing of its noise
        found.append(lasting)
    return np.array(found)


def _is_content(blocks: Array, noise: Array, mean: float, uneven: float, fewest: int) -> bool:
    """Whether blocks [3, N, rings] are too strong, or in colour too unlike each other, for this noise [3, rings]."""
    times = blocks / noise[:, None]
    return least_power(times) > UNEXPLAINED or unevenness(times, noise > STRONG * mean, fewest) > uneven


def least_power(times: Array) -> float:
    """How many times the power of the noise all but FLATTEST_BLOCKS of the blocks have at least.

    times  [3, N, rings], the power of every block over that of the noise; the two lowest rings, where even flat blocks have
           content, do not count, here and below
    """
    weights = _SIZES * np.ones((3, 1))
    weights[:, :LOWEST_RINGS] = 0
    return float(np.quantile(_weighted(times, weights), FLATTEST_BLOCKS))


def unevenness(times: Array, strong: Flags, fewest: int) -> float:
    """How unlike blocks are in colour where noise is strong [3, rings]: what all but MANY_BLOCKS of them have over what
    all but FLATTEST_BLOCKS have, as a multiple of what chance makes of noise; infinite for fewer than `fewest` coefficients.
    """
    weights = _SIZES * strong
    weights[:, :LOWEST_RINGS] = 0
    weights[0] = 0
    count = float(weights.sum())
    if count < fewest:
        return math.inf
    least, more = np.quantile(_weighted(times, weights), (FLATTEST_BLOCKS, MANY_BLOCKS))
    by_chance = find_quantile(MANY_BLOCKS, count) / find_quantile(FLATTEST_BLOCKS, count)
    return float(more / max(least, np.finfo(float).tiny)) / by_chance


def _weighted(times: Array, weights: Array) -> Array:
    """The mean [N] of times [3, N, rings] with weights [3, rings]."""
    return np.asarray(np.einsum("anr,ar->n", times, weights) / weights.sum())
