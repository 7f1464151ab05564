"""The spectrum of noise that is not white: resized, demosaiced or blotchy, stronger in one colour than in another.

Blocks of 16 x 16 pixels are transformed by the DCT along the opponent axes of colour, and their power is looked at where the
picture is flattest. Noise is the same everywhere, content is not: P(a), the mean power of the flattest share a, stays as it
is for noise when a larger share is taken, and grows for content. With content growing by CONTRAST from the smaller to the
larger share, what does not grow is (CONTRAST P(small) - P(large)) / (CONTRAST - 1). Uniform texture is the exception; it is
almost without colour, and what colour it has lies along one axis. So neither of the colour axes counts for much more than the
other, and grey for no more than the finest detail (`white_limit`) or the noise of the colour axes explains. Where even the
flattest blocks have far more than what is left, the picture is texture all over, and nothing was found; nor where few blocks
have as little as the flattest: noise is a floor on which many of them lie.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from leader.pictures.blocks import Array, Flags
from leader.pictures.noise_level import find_unsaturated
from leader.pictures.noise_spectrum import NoiseSpectrum
from leader.pictures.texture_limit import OPPONENT, flattest, white_limit

SIDE = 16
STEP = SIDE // 2
SMALL, LARGE = 0.05, 0.25
"""The two shares of the blocks, the flattest, that are compared."""
CONTRAST = 4.0
STEEPEST = 5.0
"""How many times the power of the next ring one of the lowest rings may have: content remains there even where it is flat."""
HALF = 0.5
"""Share of the blocks that is looked at even where most of a picture touches black or white."""
FEWEST, SMALLEST = 100, 150
"""Blocks to look at that are needed for a spectrum, and blocks of the whole picture: in one of 96 pixels a side, which has
fewer, gravel and dirt look like noise.
"""
SHARED, ALIKE = 2.0, 3.0
"""How many times the power of the weaker colour axis grey, and the stronger one, may have at the same frequency."""
AUDIBLE = 0.025
"""Coloured noise weaker than this standard deviation is not told from content: textures of seven development
photographs, clean, 192 pixels a side, were taken for noise of 0.013 to 0.032, six of them for 0.023 or less.
"""
FLAT, UNEXPLAINED = 0.02, 4.0
"""Where all but this share of the blocks have so many times the power of the noise, it is content: with blotches of 0.03 and
0.06 on 32 such parts it was 2 or less in 60 of 64, in the clean one that looks noisier than AUDIBLE 39.
"""
STRONG, FIFTH, UNEVEN = 2.0, 0.2, 1.6
"""Where noise has more than so many times its mean power, all but this share of the blocks may have so many times the colour of
all but FLAT of them. `benchmarks/blotches.py`, parts of 128 to 256 pixels of development photographs: 1.5 or less with
blotches in nearly all, more in all but one that are clean or have white noise and look blotched.
"""
FAINTEST = 0.02
"""No frequency counts for cleaner than this share of the standard deviation of a pixel."""
NOT_WHITE = 0.6
"""Mean distance |log2| of the power from its own mean, over frequencies and axes, from which on noise is not white."""

_FREQUENCY: Array = np.hypot(*np.meshgrid(np.arange(float(SIDE)), np.arange(float(SIDE)), indexing="ij"))
_EDGES = np.array([1.0, 1.75, 2.5, 4.0, 5.5, 7.0, 8.5, 10.0, 11.5, 13.0, 14.5])
_GROUPS = np.digitize(_FREQUENCY, _EDGES)
"""[16, 16] rings of frequencies that share their power: 0 is the mean of a block, the corners are one."""
_SIZES = np.bincount(_GROUPS.reshape(-1)).astype(np.float64)
LOWEST = 2


def _dct() -> Array:
    k, n = np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    rows = np.cos(np.pi * k * (2 * n + 1) / (2 * SIDE)) * np.sqrt(2 / SIDE)
    rows[0] /= np.sqrt(2)
    return np.asarray(rows, dtype=np.float64)


_DCT = _dct()


def noise_spectrum(pixels: Array, known: Flags | None, least: float, uneven: float = UNEVEN) -> NoiseSpectrum | None:
    """The spectrum of the noise of pixels [H, W, 1 or 3] in [0, 1]; None where it cannot be told from white, or at all.

    In grey pictures nothing tells coloured noise from texture.

    known   [H, W] marks valid pixels
    least   standard deviation that the noise has at any frequency: that of rounding
    uneven  how many times the colour of the flattest blocks others may have; infinite behind JPEG, which sets weak
            coefficients to zero in some of them
    """
    rings = None if pixels.shape[2] == 1 or min(pixels.shape[:2]) < SIDE else _rings(pixels, known)
    if rings is None:
        return None
    blocks, usable = rings
    powers = _lasting(blocks, usable)
    limit = white_limit(pixels.mean(2, keepdims=True), known) * np.sqrt(3)
    weaker = powers[1:].min(0)
    powers[0] = np.minimum(powers[0], np.maximum(limit**2, SHARED * weaker))
    powers[1:] = np.minimum(powers[1:], ALIKE * weaker)
    sizes = _SIZES / SIDE**2
    powers = np.maximum(powers, max(least**2, FAINTEST**2 * float((powers @ sizes).mean())))
    mean = float((powers @ sizes).mean())
    distance = float((np.abs(np.log2(powers / mean)) @ sizes).mean())
    if mean < AUDIBLE**2 or distance < NOT_WHITE or _is_content(blocks[:, usable], powers, mean, uneven):
        return None
    table = powers[:, _GROUPS]
    return NoiseSpectrum(np.pad(table, ((0, 0), (0, 1), (0, 1)), mode="edge"))


def _rings(pixels: Array, known: Flags | None) -> tuple[Array, Flags] | None:
    """Power [3, R, X, rings] of blocks per axis of colour and ring of frequencies, and which [R, X] to look at; None where
    those are too few.
    """
    windows = sliding_window_view(pixels, (SIDE, SIDE), axis=(0, 1))[::STEP, ::STEP]
    usable = find_unsaturated(windows, HALF)  # clipped noise is weaker, but of the same shape
    if known is not None:
        usable &= np.asarray(sliding_window_view(known, (SIDE, SIDE))[::STEP, ::STEP].all(axis=(2, 3)))
    if usable.size < SMALLEST or int(usable.sum()) < FEWEST:
        return None
    turned = np.einsum("ac,rxcij->arxij", OPPONENT, windows)
    power = np.einsum("ki,arxij,lj->arxkl", _DCT, turned, _DCT, optimize=True) ** 2
    return np.stack([power[..., ring == _GROUPS].mean(-1) for ring in range(_GROUPS.max() + 1)], axis=-1), usable


def _lasting(rings: Array, usable: Flags) -> Array:
    """Noise power [3, rings]: what blocks [3, R, X, rings] keep where a smaller share of them, the flattest, is taken."""
    found = []
    for axis in rings:
        energy = axis[..., 1:] @ _SIZES[1:]
        small, large = (axis[flattest(energy, usable, share)].mean(0) for share in (SMALL, LARGE))
        lasting = np.maximum(CONTRAST * small - large, 0) / (CONTRAST - 1)
        for ring in (2, 1):
            lasting[ring] = min(lasting[ring], STEEPEST * lasting[ring + 1])
        lasting[0] = lasting[1]  # the mean of a block says nothing of its noise
        found.append(lasting)
    return np.array(found)


def _is_content(blocks: Array, noise: Array, mean: float, uneven: float) -> bool:
    """Whether blocks [3, N, rings] are too strong, or in colour too unlike each other, for this noise [3, rings]."""
    times = blocks / noise[:, None]
    return least_power(times) > UNEXPLAINED or unevenness(times, noise > STRONG * mean) > uneven


def least_power(times: Array) -> float:
    """How many times the power of the noise all but FLAT of the blocks have at least.

    times  [3, N, rings], the power of every block over that of the noise; the two lowest rings, where even flat blocks have
           content, do not count, here and below
    """
    weights = _SIZES * np.ones((3, 1))
    weights[:, :LOWEST] = 0
    return float(np.quantile(_weighted(times, weights), FLAT))


def unevenness(times: Array, strong: Flags) -> float:
    """How many times what all but FLAT of the blocks have in colour all but FIFTH of them have, where noise is strong
    [3, rings]; infinite where it is nowhere.
    """
    weights = _SIZES * strong
    weights[:, :LOWEST] = 0
    weights[0] = 0
    if not weights.any():
        return math.inf
    least, more = np.quantile(_weighted(times, weights), (FLAT, FIFTH))
    return float(more / max(least, np.finfo(float).tiny))


def _weighted(times: Array, weights: Array) -> Array:
    """The mean [N] of times [3, N, rings] with weights [3, rings]."""
    return np.asarray(np.einsum("anr,ar->n", times, weights) / weights.sum())
