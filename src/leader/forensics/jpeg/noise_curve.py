"""The noise of a picture before it became a JPEG, and how it grew or fell with brightness.

It grows as variance = floor + gain * brightness, and falls as noise of light does behind a camera's gamma (`noise.light`).

Blocks of luma, Cb and Cr are sorted by brightness into bins, and the flattest of each bin tell how likely every noise level is
there, by how often their coefficients fell into cells of the steps (`quantised_noise`). One law is sought that all bins agree
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
from leader.forensics.noise.light import GAMMA, LightNoise
from leader.forensics.noise.shot import GROWING, ShotNoise
from leader.pictures.jpeg_history import JpegHistory

_CONSTANTS = read_constants("jpeg.noise_curve")
MOST_BINS = _CONSTANTS.count("most_bins")
TEMPER, CLEAR_GROWTH = _CONSTANTS.numbers("temper", "clear_growth")
LEAST_GAIN, LEAST_SURVIVING, TOO_DARK = _CONSTANTS.numbers("least_gain", "least_surviving", "too_dark")
CLEAR_FALL, FAINTEST_LIGHT = _CONSTANTS.numbers("clear_fall", "faintest_light")
MOST_GREY, BEYOND_ERROR = _CONSTANTS.numbers("most_grey", "beyond_error")
SHARES, LIGHT_SHARES = np.linspace(0, 1, 11), np.array([0.0, 0.1, 0.25, 0.5, 0.75])
"""Of the variance at the mean brightness that grow with it: of noise of pixels, and of light."""
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
    on, and of noise that is the same in all colours, as luma alone tells (less than `level` where there is no chroma).
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
    seen = pixels if known is None else pixels[known]
    middle = float(seen.mean())
    bright, coloured = _sort_blocks(luma), [one for plane in chroma for one in _sort_blocks(plane)]
    if not bright:
        return None
    votes = [one.vote(_grow(one.pixels, middle)) for one in bright]
    of_luma = LUMA_GAIN * _fit_law(votes).level
    if min(middle, 1 - middle) < TOO_DARK * CLIPPED_MEAN * of_luma:  # points of light, or dots on white
        return NoiseBefore(0.0, 0.0, None)
    law = _fit_law(votes + [one.vote(_grow(one.pixels, middle)) for one in coloured])
    falling = _read_light(bright, coloured, middle, law, least)
    if falling is not None and falling.level(seen) > BEYOND_ERROR * least:
        return NoiseBefore(falling.level(seen), 0.0, falling)
    share = float(SHARES[law.row])
    floor, gain = law.level**2 * (1 - share), law.level**2 * share / middle
    found = ShotNoise(gain, floor, least) if gain >= LEAST_GAIN else None
    if found is not None:
        dark, high = found.std(np.array([0.2, 0.8]))
        survives = (luma.steps / 2 < luma.unit * high).mean()  # coarser steps leave little but content
        if survives < LEAST_SURVIVING or law.ahead < CLEAR_GROWTH or (high / dark) ** 2 <= GROWING:
            found = None
    return NoiseBefore(law.level, of_luma, found)


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

    def vote(self, std: Array) -> Array:
        """Log-likelihood [shares, LEVELS] of noise that has these standard deviations [shares, LEVELS, Q, C] here."""
        seen = np.sqrt((std**2 * share_left(self.pixels, std)).mean(-2) @ self.plane.shares)
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


def _grow(pixels: Array, middle: float) -> Array:
    """Standard deviation [SHARES, LEVELS, Q, C] at pixels [Q, C] of noise that grows from what it is at `middle`."""
    growth = 1 + SHARES[:, None, None, None] * (pixels / middle - 1)
    return np.asarray(LEVELS[:, None, None] * np.sqrt(np.maximum(growth, FAINTEST)))


def _fall(pixels: Array, middle: float) -> Array:
    """The same [LIGHT_SHARES, LEVELS, Q, C] of noise of light; where it exceeds the light, as where both are as strong."""
    share, slope = LIGHT_SHARES[:, None, None, None], middle ** (1 - GAMMA) / GAMMA
    floor = np.sqrt(1 - share) * LEVELS[:, None, None] / slope
    light = np.maximum(pixels.clip(0) ** GAMMA, floor)
    variance = floor**2 + share * (LEVELS[:, None, None] / slope) ** 2 * light / middle**GAMMA
    return np.asarray(light ** (1 / GAMMA - 1) / GAMMA * np.sqrt(variance))


@dataclass(frozen=True)
class _Law:
    """How noise depends on brightness.

    level  standard deviation at the mean brightness: the mean of the likely ones, any being as likely at first
    row    of the likeliest share
    best   its log-likelihood; ahead: by how much that is more than the first share's
    """

    level: float
    row: int
    best: float
    ahead: float


def _fit_law(votes: list[Array]) -> _Law:
    """The law that votes [shares, LEVELS] agree on."""
    total = np.sum(votes, axis=0)
    weights = LEVELS * np.exp(TEMPER * (total - total.max()))  # the levels lie in equal ratios
    level = float((weights * LEVELS).sum() / weights.sum())
    return _Law(level, int(total.max(1).argmax()), float(total.max()), float(total.max() - total[0].max()))


def _read_light(bright: list[_Bin], coloured: list[_Bin], middle: float, law: _Law, least: float) -> LightNoise | None:
    """The noise of light that explains the bins of luma and chroma clearly better than `law`, if any does."""
    slope = middle ** (1 - GAMMA) / GAMMA
    if law.level < FAINTEST_LIGHT * slope:
        return None
    votes = [one.vote(_fall(one.pixels, middle)) for one in bright + coloured]
    light = _fit_law(votes)
    of_luma = _fit_law(votes[: len(bright)]).level if coloured else light.level
    if light.best < law.best + CLEAR_FALL or of_luma > MOST_GREY * light.level:
        return None
    share, variance = float(LIGHT_SHARES[light.row]), (light.level / slope) ** 2
    found = LightNoise(max(share * variance / middle**GAMMA, FAINTEST), (1 - share) * variance, least)
    return found if found.floor >= FAINTEST_LIGHT**2 else None
