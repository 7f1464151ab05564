"""Noise behind quantisation: how strong it was before, and what the quantisation itself added.

A JPEG holds multiples of known steps. White noise has the same variance at every frequency of a block, content
fades with frequency: in the flattest blocks both are fitted, by likelihood, to how often coefficients fell into
cells of their steps. This works where most coefficients are zero, and where patches of pixels have lost their rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import (
    BLUE_ERROR,
    RED_ERROR,
    Array,
    Blocks,
    Flags,
    compute_chroma,
    compute_luma,
    finest_detail,
    transform_blocks,
)
from leader.pictures.jpeg_history import JpegHistory
from leader.transforms import BLOCK

_CONSTANTS = read_constants("jpeg.quantised_noise")
FLATTEST = _CONSTANTS.number("flattest")
FEWEST_FLAT_BLOCKS, FEWEST_HITS = _CONSTANTS.counts("fewest_flat_blocks", "fewest_hits")
SUBSAMPLING_LOSS = _CONSTANTS.number("subsampling_loss")

_CURVE = (
    *((0.0, 1.1), (0.3, 1.1), (0.55, 1.0), (0.85, 0.87), (1.24, 0.67), (1.74, 0.53), (2.24, 0.416), (2.75, 0.325)),
    *((3.5, 0.235), (4.5, 0.149), (5.4, 0.113), (6.4, 0.085), (7.6, 0.053), (9.0, 0.0287), (11.0, 0.02), (13.5, 0.012)),
    *((17.4, 0.0063), (24.0, 0.0026), (36.0, 0.0012), (1e6, 0.0)),
)
RARITY, LOST = np.array(_CURVE).T
"""Mean squared error at a frequency, over step^2 / 12, by -log of the share of its coefficients that are not zero:
measured on photographs, see `benchmarks/jpeg_error.py`.
"""

_FREQUENCY: Array = np.hypot(*np.meshgrid(np.arange(float(BLOCK)), np.arange(float(BLOCK)), indexing="ij"))
_USED = np.add.outer(np.arange(BLOCK), np.arange(BLOCK)) >= 2
_DEVIATES = np.linspace(0, 8, 4001)
_TAILS = np.array([math.erfc(z / math.sqrt(2)) for z in _DEVIATES])
_FALLS = np.diff(_TAILS) / np.diff(_DEVIATES)
_STARTS = _TAILS[:-1] - _FALLS * _DEVIATES[:-1]


NOISES, CONTENTS, SLOPES = np.geomspace(0.1, 160, 60), np.geomspace(0.05, 100, 30), (1.0, 1.5, 2.0, 3.0)
"""Standard deviations of noise and of content at a middle frequency, and exponents of content, that are tried."""
TOGETHER = 8
"""Noises whose likelihood is computed at a time: what that takes stays in the processor's cache."""


def choose_flat_blocks(blocks: Blocks, usable: Flags, fewest: int = 2 * FEWEST_FLAT_BLOCKS) -> Flags:
    """Which blocks [R, C] to search for noise: the flattest of the usable ones, at least `fewest` if possible."""
    energy = (blocks.coefficients**2)[..., _USED].sum(-1)
    return choose_flattest(energy, blocks.known, usable, FLATTEST, fewest, 1)


def choose_flattest(
    energy: Array, known: Flags, usable: Flags, share: float, fewest: int = FEWEST_FLAT_BLOCKS, step: int = 2
) -> Flags:
    """The share of the usable windows [R, X], at least `fewest`, whose known neighbours, `step` windows away, have the least
    energy.

    Judged by its neighbours, a window is not chosen for happening to have little noise.
    """
    total, count = (_sum_neighbours(plane, step) for plane in (np.where(known, energy, 0.0), known.astype(np.float64)))
    usable = usable & (count > 0)
    if not usable.any():
        return usable
    around = total / np.maximum(count, 1)
    chosen: Flags = usable & (around <= np.quantile(around[usable], max(share, min(1.0, fewest / int(usable.sum())))))
    return chosen


def _sum_neighbours(plane: Array, step: int) -> Array:
    """Of every entry of a plane [R, X] those above, below, left and right of it, so many steps away."""
    padded, inner = np.pad(plane, step), slice(step, -step)
    found: Array = padded[: -2 * step, inner] + padded[2 * step :, inner]
    return found + padded[inner, : -2 * step] + padded[inner, 2 * step :]


def noise_before(coefficients: Array, steps: Array) -> float:
    """Standard deviation of the white noise in blocks [N, 8, 8] before they were rounded to multiples of steps [8, 8]."""
    cells = _Cells.of(coefficients, steps)
    noises, contents = NOISES, CONTENTS
    best, chosen = -np.inf, (0.0, 0.0, 2.0)
    for _ in range(2):
        for slope in SLOPES:
            likelihood = cells.likelihood(noises, contents, slope)
            at = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
            if likelihood[at] > best:
                best, chosen = float(likelihood[at]), (float(noises[at[0]]), float(contents[at[1]]), slope)
        noises, contents = (np.geomspace(value / 1.25, value * 1.25, 21) for value in chosen[:2])
    return chosen[0]


def profile_noise(coefficients: Array, steps: Array) -> Array:
    """Log-likelihood, at most 0, of each of `NOISES` as the white noise in such blocks, whatever their content is."""
    cells = _Cells.of(coefficients, steps)
    found = np.stack([cells.likelihood(NOISES, CONTENTS, slope).max(1) for slope in SLOPES]).max(0)
    profile: Array = found - found.max()
    return profile


@dataclass(frozen=True)
class _Cells:
    """How often coefficients lie up to `inner`, up to `outer` and beyond, by frequency: counts [3, K]. Frequencies for
    which all of these are equal are counted together.
    """

    counts: Array
    inner: Array
    outer: Array
    frequency: Array

    @classmethod
    def of(cls, coefficients: Array, steps: Array) -> _Cells:
        """Those of blocks [N, 8, 8] rounded to multiples of steps [8, 8]."""
        q = steps[_USED]
        cells = np.abs(np.rint(coefficients[:, _USED] / q))
        middle = np.floor(np.median(cells, axis=0))
        below, above = (cells <= middle).sum(0), (cells > 2 * middle + 1).sum(0)
        alike, member = np.unique([(middle + 0.5) * q, (2 * middle + 1.5) * q, _FREQUENCY[_USED]], axis=1, return_inverse=True)
        counts = [np.bincount(member.reshape(-1), count) for count in (below, len(cells) - below - above, above)]
        return cls(np.array(counts), *alike)

    def likelihood(self, noises: Array, contents: Array, slope: float) -> Array:
        """Log-likelihood [noises, contents] of white noise and of content that fades with this exponent of frequency."""
        content = np.multiply.outer(contents**2, (self.frequency / 4) ** (-2 * slope))
        found = []
        for first in range(0, len(noises), TOGETHER):
            scale = np.sqrt(noises[first : first + TOGETHER, None, None] ** 2 + content)
            far, near = (_tail(edge / scale) for edge in (self.outer, self.inner))
            tiny = 1e-4  # a single texture must not outweigh everything
            shares = zip((1 - near, near - far, far), self.counts, strict=True)
            found.append(sum(np.log(np.maximum(share, tiny)) @ count for share, count in shares))
        return np.concatenate(found)


def _tail(deviates: Array) -> Array:
    """The share of a normal distribution beyond `deviates` >= 0 on both sides: `np.interp`, without a search in equal steps."""
    inside = np.minimum(deviates, _DEVIATES[-1])
    at = np.minimum(inside / _DEVIATES[1], len(_FALLS) - 1).astype(np.intp)
    return np.asarray(_FALLS[at] * inside + _STARTS[at])


def compression_error(pixels: Array, history: JpegHistory, known: Flags | None) -> float:
    """Root mean square error that the compression made of pixels [H, W, 1 or 3] in [0, 1], in the same units."""
    luma = transform_blocks(compute_luma(pixels), history.offset, known)
    total = _quantisation(luma, history.luma_steps())
    if pixels.shape[2] == 3:
        planes = compute_chroma(pixels, history.sampling, history.offset)
        for plane, gain in zip(planes, (BLUE_ERROR, RED_ERROR), strict=True):
            loss = 0.0 if history.sampling == (1, 1) else SUBSAMPLING_LOSS * finest_detail(plane)
            total += gain * (_quantisation(transform_blocks(plane), history.chroma_steps()) + loss)
    return math.sqrt(total + 1 / 12) / 255  # rounded to 8 bits when it was decoded


def step_error(history: JpegHistory) -> float:
    """Root mean square error of the low frequencies of a block where none of its coefficients is zero, for [0, 1] pixels."""
    low = history.luma_steps()[: BLOCK // 2, : BLOCK // 2]
    return float(np.sqrt((low**2).mean() / 12)) / 255


def _quantisation(blocks: Blocks, steps: Array) -> float:
    """Mean squared error of the coefficients of the known blocks."""
    return float(band_errors(blocks, steps).mean())


def band_errors(blocks: Blocks, steps: Array) -> Array:
    """Mean squared error [8, 8] of the coefficients of the known blocks, by frequency."""
    coefficients = blocks.coefficients[blocks.known]
    if not len(coefficients):
        return np.full((BLOCK, BLOCK), steps[0, 0] ** 2 / 12 / BLOCK**2)
    rarity = rarity_of(np.rint(coefficients / steps) != 0, steps)
    lost = np.exp(np.interp(rarity, RARITY, np.log(np.maximum(LOST, 1e-9))))
    lost[0, 0] = 1.0
    errors: Array = lost * steps**2 / 12
    return errors


def rarity_of(hit: Flags, steps: Array) -> Array:
    """-log of the share of coefficients [N, 8, 8] that are not zero.

    Where hardly any is, it is extrapolated from the other frequencies: larger steps lie further out in the tails, and content
    fades with a power of frequency.
    """
    count = hit.sum(0)
    own: Array = -np.log((count + 0.5) / (len(hit) + 1))
    alive = (count >= FEWEST_HITS) & (_FREQUENCY >= 1)
    logs = np.log(np.maximum(own, 1e-3) / steps)
    frequency = np.log(np.maximum(_FREQUENCY, 0.7))
    slope = 2.0
    if alive.sum() >= 6:
        weights = np.sqrt(np.minimum(count[alive], 100))
        slope = float(np.clip(np.polyfit(frequency[alive], logs[alive], 1, w=weights)[0], 0.5, 4))
    if not alive.any():
        return own
    weights = np.sqrt(np.minimum(count[alive], 100))
    start = float(np.average(logs[alive] - slope * frequency[alive], weights=weights))
    continued = np.exp(start + slope * frequency) * steps
    return np.where(count >= FEWEST_HITS, own, np.maximum(own, continued))
