"""The noise of a picture before it became a JPEG, and how it grew with brightness: variance = floor + gain * brightness.

Blocks of luma, Cb and Cr are sorted by brightness into bins, and the flattest of each bin tell how likely every noise level is
there, by how often their coefficients fell into cells of the steps (`quantised_noise`). One line is sought that all bins agree
with: a bin of flat blocks says much, one of texture little. Its level is the mean of the likely ones; the likeliest of all
jumps between none and far too much where there is hardly more than texture, or where coarse steps leave little. The noise of a
plane is that of R, G and B weighed by the squares of their shares; each has the variance of its own brightness, less what
clipping at black and white took off (`clipping`).
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from leader.forensics.constants import read_constants
from leader.forensics.jpeg.blocks import LUMA_GAIN, Array, Flags
from leader.forensics.jpeg.noise_planes import NoisePlane, read_chroma, read_luma
from leader.forensics.jpeg.quantised_noise import FEWEST_FLAT_BLOCKS, NOISES, choose_flat_blocks, profile_noise
from leader.forensics.noise.clipping import share_left
from leader.forensics.noise.shot import GROWING, ShotNoise
from leader.pictures.jpeg_history import JpegHistory

_CONSTANTS = read_constants("jpeg.noise_curve")
MOST_BINS = _CONSTANTS.count("most_bins")
TEMPER, CLEAR_GROWTH = _CONSTANTS.numbers("temper", "clear_growth")
LEAST_GAIN, LEAST_SURVIVING, TOO_DARK = _CONSTANTS.numbers("least_gain", "least_surviving", "too_dark")
SHARES = np.linspace(0, 1, 11)[:, None]
"""Of the variance at the mean brightness that grow with it."""
LEVELS = np.geomspace(0.0005, 0.6, 150)
"""Standard deviations at the mean brightness that are tried."""
QUANTILES = (np.arange(8) + 0.5) / 8
"""Of the pixels of a bin, which stand for all of them."""
FAINTEST = 1e-6
"""Of the variance at the mean brightness that black has at least."""
CLIPPED_MEAN = 1 / math.sqrt(2 * math.pi)
"""Of its standard deviation: the mean of noise that was clipped at black, which no picture with this noise falls below."""


@dataclass(frozen=True)
class NoiseBefore:
    """Standard deviations of [0, 1] pixels before compression: of noise that is independent in R, G and B, as all planes agree
    on, and of noise that is the same in all colours, as luma alone tells (0 where there is no chroma to compare it with).
    """

    level: float
    of_luma: float
    shot: ShotNoise | None


def read_noise_before(pixels: Array, history: JpegHistory, known: Flags | None, least: float) -> NoiseBefore | None:
    """The noise of pixels [H, W, 1 or 3] in [0, 1] before this compression; None where too little of them is known.

    known  [H, W] marks valid pixels
    least  standard deviation that noise counts with at any brightness
    """
    luma, chroma = read_luma(pixels, history, known), read_chroma(pixels, history, known)
    middle = float((pixels if known is None else pixels[known]).mean())
    bright, coloured = _sort_blocks(luma), [one for plane in chroma for one in _sort_blocks(plane)]
    if not bright:
        return None
    votes = _add_votes(bright, middle)
    of_luma = LUMA_GAIN * _fit_line(votes)[0]
    if min(middle, 1 - middle) < TOO_DARK * CLIPPED_MEAN * of_luma:  # points of light, or dots on white
        return NoiseBefore(0.0, 0.0, None)
    level, share, growth = _fit_line(votes + _add_votes(coloured, middle))
    floor, gain = level**2 * (1 - share), level**2 * share / middle
    found = ShotNoise(gain, floor, least) if gain >= LEAST_GAIN else None
    if found is not None:
        dark, high = found.std(np.array([0.2, 0.8]))
        survives = (luma.steps / 2 < luma.unit * high).mean()  # coarser steps leave little but content
        if survives < LEAST_SURVIVING or growth < CLEAR_GROWTH or (high / dark) ** 2 <= GROWING:
            found = None
    return NoiseBefore(level, of_luma if chroma else 0.0, found)


@dataclass(frozen=True)
class _Bin:
    """The flattest blocks of a plane that are about as bright.

    pixels   [Q, C], brightnesses of their channels, each as frequent
    plane    of which they are a part
    profile  [N], the log-likelihood, at most 0, of every level of `NOISES` in the coefficients
    """

    pixels: Array
    plane: NoisePlane
    profile: Array

    def vote(self, middle: float) -> Array:
        """Log-likelihood [SHARES, LEVELS] of noise that grows with brightness from what it is at `middle`."""
        growth = 1 + SHARES[..., None, None] * (self.pixels / middle - 1)
        grown = LEVELS[:, None, None] * np.sqrt(np.maximum(growth, FAINTEST))
        seen = np.sqrt((grown**2 * share_left(self.pixels, grown)).mean(-2) @ self.plane.shares)
        return np.asarray(np.interp(np.log(self.plane.unit * seen), np.log(NOISES), self.profile))


def _sort_blocks(plane: NoisePlane) -> list[_Bin]:
    """The bins of a plane by the brightness that its noise follows."""
    brightness, known = plane.pixels.mean(-1) @ plane.shares, plane.blocks.known
    count = min(MOST_BINS, max(int(known.sum()) // (2 * FEWEST_FLAT_BLOCKS), int(known.sum() >= FEWEST_FLAT_BLOCKS)))
    found = []
    for low, high in pairwise(np.quantile(brightness[known], np.linspace(0, 1, count + 1)) if count else ()):
        inside = known & (brightness >= low) & (brightness <= high)
        flat = choose_flat_blocks(plane.blocks, inside, FEWEST_FLAT_BLOCKS)
        if flat.any():
            pixels = np.quantile(np.moveaxis(plane.pixels[flat], 1, 0).reshape(len(plane.shares), -1), QUANTILES, axis=1)
            found.append(_Bin(pixels, plane, profile_noise(plane.blocks.coefficients[flat], plane.steps)))
    return found


def _add_votes(bins: list[_Bin], middle: float) -> Array:
    """Log-likelihood [SHARES, LEVELS] of noise that is LEVELS at brightness `middle`, in all bins."""
    return sum((one.vote(middle) for one in bins), np.zeros((len(SHARES), len(LEVELS))))


def _fit_line(total: Array) -> tuple[float, float, float]:
    """The mean of the likely levels, any being as likely at first; of the likeliest line the share of its variance that grows
    with brightness, and by how much log-likelihood [SHARES, LEVELS] it is ahead of noise that does not grow.
    """
    weights = LEVELS * np.exp(TEMPER * (total - total.max()))  # the levels lie in equal ratios
    share = float(SHARES[int(total.max(1).argmax()), 0])
    return float((weights * LEVELS).sum() / weights.sum()), share, float(total.max() - total[0].max())
